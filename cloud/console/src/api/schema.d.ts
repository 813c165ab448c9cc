export interface paths {
    "/.well-known/jwks.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Keys that verify user tokens */
        get: operations["auth.getJwks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/action-definitions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The actions of a supplier of the caller's hubs, newest first */
        get: operations["appActionDefinitions.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/action-definitions/{actionId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One action of a supplier of the caller's hubs */
        get: operations["appActionDefinitions.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/bundle-catalog": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Published bundles, the latest first */
        get: operations["bundleCatalog.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/bundle-catalog/{bundleUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One published bundle */
        get: operations["bundleCatalog.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/consent": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the caller has granted, newest first */
        get: operations["appConsent.list"];
        put?: never;
        /** Consent to what a supplier asks for */
        post: operations["appConsent.grant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/consent-settings/{supplierUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a supplier asks the caller to consent to */
        get: operations["appConsentSettings.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/consent/{consentId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Withdraw a consent */
        delete: operations["appConsent.withdraw"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/consent/{consentId}/retention": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** For how long events are kept */
        get: operations["appConsent.getRetention"];
        /** Set for how long events are kept */
        put: operations["appConsent.putRetention"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/device-ui/invoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a step of a form to the supplier of a hub */
        post: operations["appDeviceUi.invoke"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/device-ui/setup/{hubUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The forms that set up devices of a hub */
        get: operations["appDeviceUi.getSetup"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/devices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The devices of the caller's hubs, newest first */
        get: operations["appDevices.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/devices/{deviceInstanceId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One device of the caller's hubs */
        get: operations["appDevices.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/devices/{deviceInstanceId}/commands": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The commands that the caller gave a device, newest first */
        get: operations["appDeviceCommands.list"];
        put?: never;
        /** Have a device of the caller do something */
        post: operations["appDeviceCommands.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/devices/{deviceInstanceId}/commands/{commandUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One command that the caller gave a device */
        get: operations["appDeviceCommands.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/devices/{deviceInstanceId}/sensor-data": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The values of a device, latest first, or in buckets */
        get: operations["appDevices.listSensorData"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All that is stored of the caller */
        get: operations["appExport.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/hubs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The caller's hubs, newest first */
        get: operations["appHubs.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/hubs/pairing-codes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make a claim code for a hub */
        post: operations["appPairing.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/hubs/pairing-codes/offer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** What a claim code offers the caller */
        post: operations["appPairing.offer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/hubs/{hubUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One hub of the caller */
        get: operations["appHubs.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Notices of the caller's tenants, newest first */
        get: operations["appNotifications.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/notifications/{notificationId}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Mark a notice as read */
        put: operations["appNotifications.read"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/pair": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The page to pair a hub with */
        get: operations["pairPage.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/pair.css": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The style of that page */
        get: operations["pairPage.getStyle"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/pair.js": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The script of that page */
        get: operations["pairPage.getScript"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/profile": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The caller's profile */
        get: operations["appProfile.get"];
        /** Change the caller's profile */
        put: operations["appProfile.put"];
        post?: never;
        /** Delete the caller's account for good */
        delete: operations["appProfile.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/projects": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The caller's projects, newest first */
        get: operations["appProjects.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/projects/{projectId}/devices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Devices of a project, newest first */
        get: operations["appProjects.listDevices"];
        put?: never;
        /** Add devices to a project, or none */
        post: operations["appProjects.addDevices"];
        /** Take devices out of a project, or none */
        delete: operations["appProjects.removeDevices"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/projects/{projectId}/tenants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tenants that take part in a project */
        get: operations["appProjects.listTenants"];
        put?: never;
        /** Let tenants join, or none */
        post: operations["appProjects.joinTenants"];
        /** Let tenants leave with their devices, or none */
        delete: operations["appProjects.leaveTenants"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/supplier-link/authorize": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Begin to link the caller's account at a supplier */
        post: operations["supplierLinks.authorize"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/supplier-links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The caller's active links to suppliers, newest first */
        get: operations["supplierLinks.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/supplier-links/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** End a link, here and at the supplier */
        delete: operations["supplierLinks.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/supplier-links/{id}/access-token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The supplier's token, refreshed first where 5 minutes or less remain */
        get: operations["supplierLinks.getAccessToken"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/supplier-oauth-configs/{supplierUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a link to a supplier would be for */
        get: operations["supplierLinks.getConsent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Log in */
        post: operations["auth.login"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End a login */
        post: operations["auth.logout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/methods": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How people can sign in */
        get: operations["signIn.getMethods"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/oidc/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where the issuer sends a browser back to */
        get: operations["signIn.callback"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/oidc/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Send a browser to the issuer to sign in */
        get: operations["signIn.begin"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Change the password */
        post: operations["auth.changePassword"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/password/forgot": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Request a password-reset mail */
        post: operations["auth.forgotPassword"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/password/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Set a new password with a mailed token */
        post: operations["auth.resetPassword"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Exchange a refresh token */
        post: operations["auth.refresh"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/register": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Create an account and log in */
        post: operations["auth.register"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sign a browser in */
        post: operations["session.create"];
        /** Sign this browser out */
        delete: operations["session.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/session/refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Get an access token with the browser's cookie */
        post: operations["session.refresh"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** End all logins of the caller */
        delete: operations["session.deleteAll"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/supplier-link/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Where a supplier sends a user back to */
        get: operations["supplierLinks.callback"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/console": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The web console, also at any path below */
        get: operations["console.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/console/assets/{file}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A file of the console */
        get: operations["console.getFile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/docs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This description, as a page */
        get: operations["service.docs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the process is alive */
        get: operations["service.health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/invitations/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Accept an invitation */
        post: operations["invitations.accept"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/me/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** As `/app/notifications`, for any client */
        get: operations["me.notifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Metrics for Prometheus */
        get: operations["service.metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This description (OpenAPI 3.1) */
        get: operations["service.openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/activation-events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Activations of devices of all tenants, latest first */
        get: operations["activationEvents.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/agent-releases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Agent releases, newest first */
        get: operations["platformAgentReleases.list"];
        put?: never;
        /** Add a signed release, whose file is uploaded next */
        post: operations["platformAgentReleases.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/agent-releases/{releaseUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Activate or deactivate a release, or change its channel */
        patch: operations["platformAgentReleases.update"];
        trace?: never;
    };
    "/platform/agent-update-policies": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Update policies of all tenants, newest first */
        get: operations["platformUpdatePolicies.list"];
        /** Create or replace an update policy */
        put: operations["platformUpdatePolicies.put"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/agent-update-policies/{policyUuid}/rollout/abort": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Abort rollouts */
        post: operations["platformUpdatePolicies.abortRollout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/agent-update-policies/{policyUuid}/rollout/halt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Halt rollouts */
        post: operations["platformUpdatePolicies.haltRollout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/agent-update-policies/{policyUuid}/rollout/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resume halted rollouts */
        post: operations["platformUpdatePolicies.resumeRollout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/audit-logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who changed what, in all tenants, latest first */
        get: operations["auditLogs.listAll"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/hubs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Hubs of all tenants, newest first */
        get: operations["platformHubs.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/hubs/{hubUuid}/jobs/self-update": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Create a job that updates a hub's agent to a release */
        post: operations["hubJobs.selfUpdate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/hubs/{hubUuid}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Release a hub of any tenant and free its hardware */
        post: operations["platformHubs.release"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/hubs/{hub_uuid}/block": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Block a hub and revoke its tokens */
        post: operations["hubs.block"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/hubs/{hub_uuid}/unblock": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Unblock a hub, so that it can claim again */
        post: operations["hubs.unblock"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/permission-cache": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Statistics of this replica's permission cache */
        get: operations["permissionCache.get"];
        put?: never;
        post?: never;
        /** Clear the permission cache on every replica */
        delete: operations["permissionCache.clear"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/registration-events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Registration events of all tenants, newest first */
        get: operations["registrationEvents.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/registration-events/{id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a registration event again, whatever became of it */
        post: operations["registrationEvents.retry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/supplier-oauth-configs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Create or replace the OAuth configuration of a supplier */
        put: operations["platformSupplierOauthConfigs.put"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/supplier-oauth-configs/approvals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Changes of OAuth configurations that wait for approval, oldest first */
        get: operations["supplierOauthApprovals.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/supplier-oauth-configs/approvals/{id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Put a change in force */
        post: operations["supplierOauthApprovals.approve"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/supplier-oauth-configs/approvals/{id}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Refuse a change */
        post: operations["supplierOauthApprovals.reject"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/tenants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tenants, newest first */
        get: operations["platformTenants.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/tenants/{tenantUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A tenant and its limits */
        get: operations["platformTenants.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/platform/tenants/{tenantUuid}/limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Replace the limits of a tenant */
        put: operations["platformTenants.setLimits"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/public/device-library": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Device models that the service knows, by key */
        get: operations["library.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/public/device-library/{brand}/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One device model of the library */
        get: operations["library.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/public/invitations/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What an invitation offers */
        get: operations["invitations.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/public/quantities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All quantities that can be measured */
        get: operations["library.listQuantities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/public/schemas/decoder": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The JSON Schema of decoders */
        get: operations["library.getDecoderSchema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the service can serve now */
        get: operations["service.readiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/action-definitions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Actions, newest first */
        get: operations["actionDefinitions.list"];
        put?: never;
        /** Define what can be done with a device */
        post: operations["actionDefinitions.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/action-definitions/{actionId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One action */
        get: operations["actionDefinitions.get"];
        put?: never;
        post?: never;
        /** Delete an action */
        delete: operations["actionDefinitions.delete"];
        options?: never;
        head?: never;
        /** Change an action */
        patch: operations["actionDefinitions.update"];
        trace?: never;
    };
    "/tenant/agent-releases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Agent releases, newest first */
        get: operations["agentReleases.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/agent-releases/{releaseUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One agent release */
        get: operations["agentReleases.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/agent-update-policies": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Update policies, newest first */
        get: operations["updatePolicies.list"];
        /** Create or replace an update policy */
        put: operations["updatePolicies.put"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/agent-update-policies/{policyUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One update policy, with its rollouts */
        get: operations["updatePolicies.get"];
        put?: never;
        post?: never;
        /** Delete an update policy */
        delete: operations["updatePolicies.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/agent-update-policies/{policyUuid}/rollout/abort": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Abort rollouts */
        post: operations["updatePolicies.abortRollout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/agent-update-policies/{policyUuid}/rollout/halt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Halt rollouts */
        post: operations["updatePolicies.haltRollout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/agent-update-policies/{policyUuid}/rollout/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resume halted rollouts */
        post: operations["updatePolicies.resumeRollout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/api-keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Active API keys, newest first */
        get: operations["apiKeys.list"];
        put?: never;
        /** Create an API key, which is returned only once */
        post: operations["apiKeys.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/api-keys/{apiKeyId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Rename an API key, change its scopes or its limit */
        put: operations["apiKeys.update"];
        post?: never;
        /** Deactivate an API key permanently */
        delete: operations["apiKeys.deactivate"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/apps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Apps, newest first */
        get: operations["apps.list"];
        put?: never;
        /** Create an app */
        post: operations["apps.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/apps/{appUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One app */
        get: operations["apps.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/apps/{appUuid}/releases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** An app's releases, newest first */
        get: operations["apps.listReleases"];
        put?: never;
        /** Add a signed release, whose file is uploaded next */
        post: operations["apps.createRelease"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/audit-logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who changed what in the tenant, latest first */
        get: operations["auditLogs.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/billing/balance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The balance of the tenant */
        get: operations["billing.getBalance"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/billing/charge-settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Where charge settings are kept
         * @deprecated
         */
        get: operations["billing.getChargeSettings"];
        /**
         * Where charge settings are kept; changes nothing
         * @deprecated
         */
        put: operations["billing.putChargeSettings"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/billing/entitlement": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the tenant may use */
        get: operations["billing.getEntitlement"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/billing/transactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tenant's transactions, newest first */
        get: operations["billing.listTransactions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/ble-query/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What all pipelines tried to deliver, as pages */
        get: operations["bleDeliveries.query"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/ble-query/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** BLE events, as pages */
        get: operations["bleEvents.query"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/ble-query/events/{bleEventId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One BLE event, with what the hub sent */
        get: operations["bleEvents.getDetail"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/ble-query/events/{bleEventId}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How a BLE event was processed, newest last */
        get: operations["bleEvents.queryRuns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/ble/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** BLE events, latest first */
        get: operations["bleEvents.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/ble/events/{bleEventId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One BLE event */
        get: operations["bleEvents.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/ble/events/{bleEventId}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How a BLE event was processed */
        get: operations["bleEvents.listRuns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/ble/reprocess": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Read stored BLE events again, or see what that would change */
        post: operations["bleReprocess.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/ble/reprocess/{taskId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How far stored BLE events are read again */
        get: operations["bleReprocess.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/ble/route": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What hubs report, and what the service keeps */
        get: operations["bleRoute.get"];
        /** Replace the route of BLE events */
        put: operations["bleRoute.put"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/ble/unknown": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Advertisers of the last 24 hours that are of no known model, latest first */
        get: operations["unknownAdvertisers.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/consent-records": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What users have granted, newest first */
        get: operations["consentRecords.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/consent-settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What users are asked to consent to */
        get: operations["consentSettings.get"];
        put?: never;
        /** Put a version in force */
        post: operations["consentSettings.put"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/dashboard/summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tenant's numbers on one page */
        get: operations["dashboard.summary"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Pipelines, oldest first */
        get: operations["pipelines.list"];
        put?: never;
        /** Create a pipeline */
        post: operations["pipelines.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/transpile": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make a pipeline of a graph or a text, or a graph of a pipeline */
        post: operations["pipelines.transpile"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/{pipelineUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One pipeline */
        get: operations["pipelines.get"];
        /** Replace a pipeline */
        put: operations["pipelines.replace"];
        post?: never;
        /** Delete a pipeline */
        delete: operations["pipelines.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/{pipelineUuid}/compare": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Compare a draft with what runs, on stored events */
        post: operations["pipelines.compare"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/{pipelineUuid}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What a pipeline tried to deliver, newest first */
        get: operations["pipelines.listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/{pipelineUuid}/dlq": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Messages that could not be delivered, newest first */
        get: operations["deadLetters.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/{pipelineUuid}/dlq/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Deliver several dead letters again */
        post: operations["deadLetters.retrySome"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/{pipelineUuid}/dlq/{dlqId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Delete a dead letter */
        delete: operations["deadLetters.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/{pipelineUuid}/dlq/{dlqId}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Deliver a dead letter again */
        post: operations["deadLetters.retry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/{pipelineUuid}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stop a pipeline where it is */
        post: operations["pipelines.pause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/{pipelineUuid}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send stored events once more */
        post: operations["pipelineReplays.begin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/{pipelineUuid}/replays": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Replays of a pipeline, newest first */
        get: operations["pipelineReplays.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/{pipelineUuid}/replays/{replayUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Cancel a replay */
        delete: operations["pipelineReplays.cancel"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/{pipelineUuid}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Run a pipeline, whatever had stopped it */
        post: operations["pipelines.resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/{pipelineUuid}/rotate-secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make another signing secret */
        post: operations["pipelines.rotateSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/data-pipelines/{pipelineUuid}/test-run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Try a pipeline on some events */
        post: operations["pipelines.testRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/device-catalog": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Device models, newest first */
        get: operations["deviceCatalog.list"];
        put?: never;
        /** Create a device model, of its own or from the library */
        post: operations["deviceCatalog.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/device-catalog/{deviceUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One device model */
        get: operations["deviceCatalog.get"];
        put?: never;
        post?: never;
        /** Delete a device model with its identifiers, protocols and versions */
        delete: operations["deviceCatalog.delete"];
        options?: never;
        head?: never;
        /** Change a device model */
        patch: operations["deviceCatalog.update"];
        trace?: never;
    };
    "/tenant/device-catalog/{deviceUuid}/identifiers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Identifiers of a device model, oldest first */
        get: operations["deviceIdentifiers.list"];
        put?: never;
        /** Say how advertisements of a device model look */
        post: operations["deviceIdentifiers.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/device-catalog/{deviceUuid}/identifiers/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Delete an identifier */
        delete: operations["deviceIdentifiers.delete"];
        options?: never;
        head?: never;
        /** Change label and notes of an identifier */
        patch: operations["deviceIdentifiers.update"];
        trace?: never;
    };
    "/tenant/device-protocols": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Protocols, newest first */
        get: operations["deviceProtocols.list"];
        put?: never;
        /** Say how advertisements of a device model are read */
        post: operations["deviceProtocols.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/device-protocols/devices/{deviceUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The device model that protocols are of */
        get: operations["deviceCatalog.getOfProtocols"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/device-protocols/test-run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Try a protocol that is not stored */
        post: operations["deviceProtocols.testRun"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/device-protocols/{deviceProtocolId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One protocol */
        get: operations["deviceProtocols.get"];
        put?: never;
        post?: never;
        /** Delete a protocol */
        delete: operations["deviceProtocols.delete"];
        options?: never;
        head?: never;
        /** Change a protocol */
        patch: operations["deviceProtocols.update"];
        trace?: never;
    };
    "/tenant/device-ui-schemas": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Forms of device models, newest first */
        get: operations["deviceUis.list"];
        put?: never;
        /** Create a form of a device model */
        post: operations["deviceUis.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/device-ui-schemas/{deviceUiId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One form */
        get: operations["deviceUis.get"];
        put?: never;
        post?: never;
        /** Delete a form */
        delete: operations["deviceUis.delete"];
        options?: never;
        head?: never;
        /** Change a form */
        patch: operations["deviceUis.update"];
        trace?: never;
    };
    "/tenant/device-versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Versions of device models, newest first */
        get: operations["deviceVersions.list"];
        put?: never;
        /** Create a version of a device model */
        post: operations["deviceVersions.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/device-versions/{deviceVersionUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One version */
        get: operations["deviceVersions.get"];
        put?: never;
        post?: never;
        /** Delete a version */
        delete: operations["deviceVersions.delete"];
        options?: never;
        head?: never;
        /** Change a version */
        patch: operations["deviceVersions.update"];
        trace?: never;
    };
    "/tenant/devices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Devices, newest first */
        get: operations["devices.list"];
        put?: never;
        /** Register a device */
        post: operations["devices.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/devices/{deviceInstanceId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One device */
        get: operations["devices.get"];
        put?: never;
        post?: never;
        /** Delete a device for good */
        delete: operations["devices.delete"];
        options?: never;
        head?: never;
        /** Change a device, or its keys */
        patch: operations["devices.update"];
        trace?: never;
    };
    "/tenant/devices/{deviceInstanceId}/activate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Put a device into use */
        post: operations["devices.activate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/devices/{deviceInstanceId}/commands": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The commands of a device, newest first */
        get: operations["deviceCommands.list"];
        put?: never;
        /** Have a device do something */
        post: operations["deviceCommands.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/devices/{deviceInstanceId}/commands/{commandUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One command of a device */
        get: operations["deviceCommands.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/devices/{deviceInstanceId}/receptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The hubs that received a device, and how strongly */
        get: operations["devices.listReceptions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/devices/{deviceInstanceId}/retire": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Take a device out of use for good */
        post: operations["devices.retire"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/devices/{deviceInstanceId}/sensor-data": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The values of a device, latest first, or in buckets */
        get: operations["devices.listSensorData"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/devices/{deviceInstanceId}/suspend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Take a device out of use for a while */
        post: operations["devices.suspend"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/devices/{deviceInstanceId}/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** When a device was heard or silent, or no hub was listening */
        get: operations["devices.getTimeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/downloads/asset-url": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A download URL, valid for five minutes */
        get: operations["downloads.getAssetUrl"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/downloads/manifest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Downloads to install hubs from */
        get: operations["downloads.getManifest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/external-endpoints": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** External endpoints, newest first */
        get: operations["externalEndpoints.list"];
        put?: never;
        /** Create an external endpoint */
        post: operations["externalEndpoints.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/external-endpoints/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One external endpoint */
        get: operations["externalEndpoints.get"];
        /** Replace an external endpoint */
        put: operations["externalEndpoints.update"];
        post?: never;
        /** Delete an external endpoint */
        delete: operations["externalEndpoints.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/external-endpoints/{id}/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Look for the proof of the domain */
        post: operations["externalEndpoints.verify"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/floor-plans": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Floor plans, newest first */
        get: operations["floorPlans.list"];
        put?: never;
        /** Create a floor plan */
        post: operations["floorPlans.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/floor-plans/{floorPlanUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One floor plan */
        get: operations["floorPlans.get"];
        put?: never;
        post?: never;
        /** Delete a floor plan */
        delete: operations["floorPlans.delete"];
        options?: never;
        head?: never;
        /** Change a floor plan, or place its hubs */
        patch: operations["floorPlans.update"];
        trace?: never;
    };
    "/tenant/floor-plans/{floorPlanUuid}/image": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The image of a floor plan */
        get: operations["floorPlans.getImage"];
        /** Replace the image of a floor plan */
        put: operations["floorPlans.putImage"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hub-monitoring/{hubUuid}/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Jobs of a hub, as pages */
        get: operations["hubJobs.page"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hub-monitoring/{hubUuid}/jobs/{jobUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One job, with its request and its result */
        get: operations["hubJobs.get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hub-monitoring/{hubUuid}/jobs/{jobUuid}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Events of a job, as pages */
        get: operations["hubJobs.pageEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hub-monitoring/{hubUuid}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Log entries of a hub, as pages */
        get: operations["hubLogs.page"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hub-monitoring/{hubUuid}/telemetry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Telemetry of a hub, as pages */
        get: operations["hubTelemetry.page"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Hubs, newest first */
        get: operations["hubs.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs/claim-codes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Claim codes, newest first */
        get: operations["claimCodes.list"];
        put?: never;
        /** Create a claim code */
        post: operations["claimCodes.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs/claim-codes/{claimCode}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Delete an unused claim code, or revoke a used one */
        delete: operations["claimCodes.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs/{hubUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One hub */
        get: operations["hubs.get"];
        put?: never;
        post?: never;
        /** Release a hub: end its credentials and free its hardware */
        delete: operations["hubs.release"];
        options?: never;
        head?: never;
        /** Label or describe a hub */
        patch: operations["hubs.update"];
        trace?: never;
    };
    "/tenant/hubs/{hubUuid}/adapters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A hub's Bluetooth adapters */
        get: operations["hubs.listAdapters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs/{hubUuid}/adapters/{address}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Set the role of an adapter */
        patch: operations["hubs.updateAdapter"];
        trace?: never;
    };
    "/tenant/hubs/{hubUuid}/apps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Apps that should be installed on a hub */
        get: operations["hubApps.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs/{hubUuid}/bundles": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What bundles brought to a hub, the latest first */
        get: operations["hubs.listBundles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs/{hubUuid}/installed-apps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Apps that a hub reports as installed */
        get: operations["hubApps.listInstalled"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs/{hubUuid}/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Jobs of a hub, newest first */
        get: operations["hubJobs.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs/{hubUuid}/jobs/app-install": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Create a job that installs a release of an app */
        post: operations["hubJobs.installApp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs/{hubUuid}/jobs/app-remove": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Create a job that removes an app */
        post: operations["hubJobs.removeApp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs/{hubUuid}/jobs/{hubJobUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Cancel an open job */
        delete: operations["hubJobs.cancel"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs/{hubUuid}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Log entries of a hub, latest first */
        get: operations["hubLogs.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs/{hubUuid}/setup-delegations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Setup delegations of a hub, newest first */
        get: operations["setupDelegations.list"];
        put?: never;
        /** Delegate the setup of a hub to a person */
        post: operations["setupDelegations.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs/{hubUuid}/setup-delegations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** End a setup delegation */
        delete: operations["setupDelegations.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/hubs/{hubUuid}/telemetry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Telemetry of a hub, latest first */
        get: operations["hubTelemetry.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/manuals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Manuals of device models, newest first */
        get: operations["deviceManuals.list"];
        put?: never;
        /** Create a manual of a device model */
        post: operations["deviceManuals.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/manuals/{deviceManualId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One manual */
        get: operations["deviceManuals.get"];
        put?: never;
        post?: never;
        /** Delete a manual */
        delete: operations["deviceManuals.delete"];
        options?: never;
        head?: never;
        /** Change a manual */
        patch: operations["deviceManuals.update"];
        trace?: never;
    };
    "/tenant/notification-settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the tenant wants to be told, by type and channel */
        get: operations["notificationSettings.list"];
        /** Set one type and channel of notices */
        put: operations["notificationSettings.put"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/notification-settings/bulk": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Set several types and channels of notices, all or none */
        post: operations["notificationSettings.putMany"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/personas": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Members and invitations */
        get: operations["personas.list"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/personas/invitations/{invitationId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke an invitation */
        delete: operations["invitations.revoke"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/personas/invitations/{invitationId}/resend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send an invitation again */
        post: operations["invitations.resend"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/personas/invite": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Invite an e-mail, or add a persona as a member */
        post: operations["personas.invite"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/personas/invite-candidates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Members of your other tenants */
        get: operations["personas.listInviteCandidates"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/personas/{personaUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a member, or leave */
        delete: operations["personas.remove"];
        options?: never;
        head?: never;
        /** Change a member's role */
        patch: operations["personas.changeRole"];
        trace?: never;
    };
    "/tenant/simulator/presets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Examples of events, one of each library model */
        get: operations["simulator.listPresets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/simulator/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** What would become of an event */
        post: operations["simulator.run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/simulator/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** What would become of several events */
        post: operations["simulator.stream"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/stream/ble/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** BLE events, live */
        get: operations["streams.bleEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/stream/hubs/{hubUuid}/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Job events of a hub, live */
        get: operations["streams.hubJobEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/stream/hubs/{hubUuid}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Log entries of a hub, live */
        get: operations["streams.hubLogs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/supplier-bundles": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Bundles, newest first */
        get: operations["bundles.list"];
        put?: never;
        /** Create a bundle, as a draft */
        post: operations["bundles.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/supplier-bundles/{bundleUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One bundle */
        get: operations["bundles.get"];
        put?: never;
        post?: never;
        /** Delete a draft */
        delete: operations["bundles.delete"];
        options?: never;
        head?: never;
        /** Change a draft */
        patch: operations["bundles.update"];
        trace?: never;
    };
    "/tenant/supplier-bundles/{bundleUuid}/apps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The apps of a bundle */
        get: operations["bundles.apps"];
        /** Replace the apps of a draft */
        put: operations["bundles.putApps"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/supplier-bundles/{bundleUuid}/archive": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Archive a published bundle */
        post: operations["bundles.archive"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/supplier-bundles/{bundleUuid}/devices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The device models of a bundle */
        get: operations["bundles.devices"];
        /** Replace the device models of a draft */
        put: operations["bundles.putDevices"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/supplier-bundles/{bundleUuid}/pipelines": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The pipelines of a bundle */
        get: operations["bundles.pipelines"];
        /** Replace the pipelines of a draft */
        put: operations["bundles.putPipelines"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/supplier-bundles/{bundleUuid}/publish": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Publish a draft */
        post: operations["bundles.publish"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/supplier-oauth-config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The supplier's OAuth configuration in force */
        get: operations["supplierOauthConfig.get"];
        /** Create or replace the supplier's OAuth configuration */
        put: operations["supplierOauthConfig.put"];
        post?: never;
        /** Delete the supplier's OAuth configuration */
        delete: operations["supplierOauthConfig.delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/tenants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tenants you are a member of */
        get: operations["tenants.list"];
        put?: never;
        /** Create a tenant, as its OWNER */
        post: operations["tenants.create"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/tenants/{tenantUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Delete a tenant and revoke everything that acts for it */
        delete: operations["tenants.delete"];
        options?: never;
        head?: never;
        /** Rename a tenant */
        patch: operations["tenants.update"];
        trace?: never;
    };
    "/tenant/tenants/{tenantUuid}/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Accept a membership that somebody else gave you */
        post: operations["tenants.accept"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/tenants/{tenantUuid}/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Members of a tenant */
        get: operations["tenants.listMembers"];
        put?: never;
        /** Give a person access, or change their role */
        post: operations["tenants.grantAccess"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/tenants/{tenantUuid}/members/{targetPersonaUuid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a member, or leave */
        delete: operations["tenants.removeMember"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/tenants/{tenantUuid}/transfer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Offer a tenant to another owner */
        post: operations["transfers.initiate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The caller as the service sees it */
        get: operations["diagnostics.test"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/transfer-requests/incoming": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Transfers you may accept or reject */
        get: operations["transfers.incoming"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/transfer-requests/outgoing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Transfers you may cancel */
        get: operations["transfers.outgoing"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/transfer-requests/{requestUuid}/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Accept a transfer and become the owner */
        post: operations["transfers.accept"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/transfer-requests/{requestUuid}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancel a transfer */
        post: operations["transfers.cancel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/transfer-requests/{requestUuid}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reject a transfer */
        post: operations["transfers.reject"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenant/units/{tenantUuid}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The caller as the service sees it in a tenant */
        get: operations["diagnostics.testUnit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description What confirms that the person means it. */
        AccountDeletionRequest: {
            /** @description The password; required for an account that has one. */
            currentPassword?: string | null;
            /**
             * Format: uuid
             * @description The uuid of the account; required for an account of another issuer.
             */
            userUuid?: string | null;
        };
        /** @description An action to define. */
        ActionDefinitionCreateRequest: {
            /** @description Its id, unique within the tenant. */
            actionId: string;
            /** @description Whether people are asked before it is carried out; false when absent. */
            confirm?: boolean | null;
            /** @description A text for people. */
            description?: string | null;
            /**
             * Format: uuid
             * @description The model whose devices it is for; every device of the tenant when absent.
             */
            deviceUuid?: string | null;
            /** @description A name for people. */
            name: string;
            /** @description What it takes: the JSON Schema of an object, of 64 KiB at most. */
            parameters?: {
                [key: string]: unknown;
            } | null;
            /** @description How it is carried out. A member that is not known is an error. */
            transport: components["schemas"]["ActionTransport"];
        };
        /** @description Something that can be done with a device. */
        ActionDefinitionResponse: {
            /** @description Its id, unique within the supplier. */
            actionId: string;
            /** @description Whether people are asked before it is carried out. */
            confirm: boolean;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description A text for people. */
            description?: string | null;
            /**
             * Format: uuid
             * @description The model whose devices it is for; null for every device of the supplier.
             */
            deviceUuid?: string | null;
            /** @description A name for people. */
            name: string;
            /** @description What it takes: the JSON Schema of an object; null for nothing. */
            parameters?: {
                [key: string]: unknown;
            } | null;
            /**
             * Format: uuid
             * @description The tenant that defined it.
             */
            supplierUuid: string;
            /** @description How it is carried out. */
            transport: components["schemas"]["ActionTransport"];
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone, empty text removes it. The result is checked like a new action. */
        ActionDefinitionUpdateRequest: {
            /** @description Whether people are asked before it is carried out. */
            confirm?: boolean | null;
            /** @description A text for people. */
            description?: string | null;
            /**
             * Format: uuid
             * @description The model whose devices it is for; the nil UUID for every device of the tenant.
             */
            deviceUuid?: string | null;
            /** @description A name for people. */
            name?: string | null;
            /** @description What it takes: the JSON Schema of an object; `{}` for nothing. */
            parameters?: {
                [key: string]: unknown;
            } | null;
            /** @description How it is carried out; it replaces all of what was given before. */
            transport?: components["schemas"]["ActionTransport"] | null;
        };
        /** @description How an action is carried out. */
        ActionTransport: {
            /**
             * Format: uuid
             * @description The external endpoint.
             */
            externalEndpointId?: string | null;
            /** @description Which of the other members there are: `HTTP` has the first three, `GATT` has `steps`. */
            kind: components["schemas"]["ActionTransportKind"];
            /** @description How the endpoint is called. */
            method?: components["schemas"]["EndpointMethod"] | null;
            /** @description The path at the endpoint, with or without a query. */
            path?: string | null;
            /** @description What is done over GATT, in this order. */
            steps?: components["schemas"]["GattStep"][] | null;
        };
        /**
         * @description What an action goes through.
         *
         *     - `HTTP`: An external endpoint of the supplier.
         *     - `GATT`: The nearest hub of the device.
         * @enum {string}
         */
        ActionTransportKind: "HTTP" | "GATT";
        /** @description A device became active. */
        ActivationEventResponse: {
            /**
             * Format: int64
             * @description The device, which may be deleted by now.
             */
            deviceInstanceId: number;
            /**
             * Format: uuid
             * @description The hub that saw the device; null of OPERATOR.
             */
            hubUuid?: string | null;
            /**
             * Format: int64
             * @description The id of the event.
             */
            id: number;
            /** @description What activated it. */
            kind: components["schemas"]["ActivationKind"];
            /**
             * Format: date-time
             * @description When it became active.
             * @example 2026-01-31T08:00:00.000000Z
             */
            occurredAt: string;
            /**
             * Format: uuid
             * @description The tenant of the device.
             */
            tenantUuid: string;
        };
        /**
         * @description What activated a device.
         *
         *     - `QUERY`: A hub asked which device it sees.
         *     - `OPERATOR`: A person or an API key.
         *     - `UPLOAD`: An upload with an advertisement of the device.
         * @enum {string}
         */
        ActivationKind: "QUERY" | "OPERATOR" | "UPLOAD";
        /**
         * @description Where a device is in its life. Retired is final.
         *
         *     - `REGISTERED`: Known, and not in use yet.
         *     - `ACTIVE`: In use.
         *     - `SUSPENDED`: Out of use for a while.
         *     - `RETIRED`: Out of use for good; what identified it may be given to another device.
         * @enum {string}
         */
        ActivationStatus: "REGISTERED" | "ACTIVE" | "SUSPENDED" | "RETIRED";
        /**
         * @description The kinds of actor.
         *
         *     - `USER`: A person.
         *     - `API_KEY`: An API key.
         *     - `HUB`: A hub.
         *     - `SYSTEM`: A background worker or the command line.
         * @enum {string}
         */
        ActorType: "USER" | "API_KEY" | "HUB" | "SYSTEM";
        /** @description One adapter as `org.bluez.Adapter1` of BlueZ shows it. */
        Adapter: {
            /** @description The address of the adapter, such as `AA:BB:CC:DD:EE:FF`, which identifies it: names such as `hci0` change across resets, addresses do not. */
            address: string;
            /** @description `public` or `random`. */
            addressType?: string | null;
            /** @description The name that it advertises. */
            alias?: string | null;
            /** @description Whether it is scanning. */
            discovering?: boolean | null;
            /** @description Company identifier of the maker of the controller (Bluetooth assigned numbers), or its name. */
            manufacturer?: string | null;
            /** @description The hardware as the kernel names it, such as `usb:v1D6Bp0246d0542`. */
            modalias?: string | null;
            /** @description The name that the kernel gave it, such as `hci0`. */
            name: string;
            /** @description Whether it is switched on. */
            powered: boolean;
        };
        /**
         * @description What an adapter is used for.
         *
         *     - `SCANNER`: It scans for advertisements.
         *     - `CONNECTOR`: It is kept free for connections.
         *     - `DISABLED`: It is not used.
         * @enum {string}
         */
        AdapterRole: "SCANNER" | "CONNECTOR" | "DISABLED";
        /** @description `POST /v1/hubs/adapters`: every Bluetooth adapter that the hub has now. */
        AdapterSnapshot: {
            /** @description All adapters; one that is missing counts as powered off. */
            adapters: components["schemas"]["Adapter"][];
        };
        /** @description The answer to an adapter snapshot. */
        AdapterSnapshotResult: {
            /**
             * Format: int64
             * @description Adapters that were known before, are missing from the snapshot and now count as powered off.
             */
            poweredOff: number;
            /**
             * Format: int64
             * @description Adapters of the snapshot that were stored.
             */
            upserted: number;
        };
        /** @description A Bluetooth adapter of a hub. */
        AdapterView: {
            /** @description The address of the adapter, which identifies it. */
            address: string;
            /** @description `public` or `random`. */
            addressType?: string | null;
            /** @description The name that it advertises. */
            alias?: string | null;
            /** @description Whether it is scanning. */
            discovering?: boolean | null;
            /**
             * Format: date-time
             * @description When the hub first reported it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            firstSeenAt: string;
            /**
             * Format: date-time
             * @description When the hub last reported it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastSeenAt: string;
            /** @description Company identifier of the maker of the controller, or its name. */
            manufacturer?: string | null;
            /** @description The hardware as the kernel names it. */
            modalias?: string | null;
            /** @description The name that the kernel gave it, such as `hci0`. */
            name: string;
            /** @description Whether it is switched on. */
            powered: boolean;
            /** @description What an operator set; an adapter without a role scans. */
            role?: components["schemas"]["AdapterRole"] | null;
            /**
             * Format: uuid
             * @description The tenant, if an operator set it.
             */
            supplier_uuid?: string | null;
        };
        /** @description The devices to add: all of them, or none. */
        AddDevicesRequest: {
            /** @description Devices of tenants that take part. */
            deviceInstanceIds: number[];
        };
        /**
         * @description The kind of a device's address.
         *
         *     - `PUBLIC`: Registered with the IEEE.
         *     - `RANDOM`: Chosen by the device or its maker.
         * @enum {string}
         */
        AddressType: "PUBLIC" | "RANDOM";
        /** @description What was advertised, by which device, and how strong the signal was. */
        Advertisement: {
            /** @description The adapter that received it. */
            adapterAddress?: string | null;
            /** @description The address of the advertiser, such as `AA:BB:CC:DD:EE:FF`. */
            address: string;
            /** @description `public` or `random`. */
            addressType?: string | null;
            /**
             * Format: int64
             * @description The registered device that sent it, where it is known.
             */
            deviceInstanceId?: number | null;
            /** @description Payload by company identifier: 4 lower-case hex digits (Bluetooth assigned numbers). */
            manufacturerData?: {
                [key: string]: string;
            };
            /** @description The name of the device, at most 248 bytes. */
            name?: string | null;
            /**
             * Format: int16
             * @description Signal strength in dBm.
             */
            rssi?: number | null;
            /** @description Payload by service UUID: 4 lower-case hex digits, or a longer UUID in full. */
            serviceData?: {
                [key: string]: string;
            };
            /** @description Services: 4 lower-case hex digits, or a longer UUID in full. */
            serviceUuids?: string[];
            /**
             * Format: int16
             * @description Transmit power in dBm, as advertised.
             */
            txPower?: number | null;
        };
        /** @description A release of the platform. */
        AgentReleaseResponse: {
            /** @description Whether it is offered: hubs are updated only to what is active and READY. */
            active: boolean;
            /** @description The architecture that it is built for, as `uname -m` names it, or `any`. */
            architecture: string;
            /**
             * Format: int64
             * @description The same release, where a number is needed.
             */
            assetId: number;
            /** @description What it is for. */
            category: components["schemas"]["ReleaseCategory"];
            /** @description The release channel, such as `stable` or `beta`. */
            channel: string;
            /**
             * Format: int64
             * @description Grows with every release of the same name.
             */
            counter: number;
            /**
             * Format: date-time
             * @description When the release was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description The manifest, byte for byte as it was signed. */
            manifest: string;
            /** @description Its name, as its manifest has it; `hub-agent` where the category is HUB_AGENT. */
            name: string;
            /**
             * Format: date-time
             * @description When its file was stored.
             * @example 2026-01-31T08:00:00.000000Z
             */
            readyAt?: string | null;
            /**
             * Format: uuid
             * @description The release.
             */
            releaseUuid: string;
            /** @description The SHA-256 digest of the file, in lower-case hex. */
            sha256: string;
            /** @description A minisign signature of `manifest`. */
            signature: string;
            /**
             * Format: int64
             * @description The size of the file.
             */
            sizeBytes: number;
            /** @description Whether its file is available. */
            status: components["schemas"]["ReleaseStatus"];
            /** @description `PUT` the file here: a path of this service while it has no `public-url`. Returned when the release is created; the same manifest sent again gets another while the file is missing, and none once it is stored. */
            uploadUrl?: string | null;
            /**
             * Format: date-time
             * @description When that URL expires: an hour later.
             * @example 2026-01-31T08:00:00.000000Z
             */
            uploadUrlExpiresAt?: string | null;
            /** @description The version of the release. */
            version: string;
        };
        /** @description How far a release has come under a policy. The numbers count hubs since the rollout was last resumed. */
        AgentRolloutResponse: {
            /** @description The architecture that it is built for. */
            architecture: string;
            /**
             * Format: date-time
             * @description When the rollout began.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description Hubs whose job failed.
             */
            failed: number;
            /**
             * Format: int64
             * @description The percentage of hubs that are given the release so far.
             */
            percent: number;
            /** @description Why it is in that state, if there is a reason. */
            reason?: string | null;
            /**
             * Format: uuid
             * @description The release.
             */
            releaseUuid: string;
            /**
             * Format: int64
             * @description Hubs that began and reported nothing for too long.
             */
            silent: number;
            /**
             * Format: int64
             * @description Hubs that were given their job.
             */
            started: number;
            /** @description The state of the rollout. */
            state: components["schemas"]["RolloutState"];
            /**
             * Format: int64
             * @description Hubs that run the release now.
             */
            succeeded: number;
            /**
             * Format: date-time
             * @description When the rollout last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
            /** @description The version of the release. */
            version: string;
        };
        /** @description An update policy: which release of the agent hubs should run. */
        AgentUpdatePolicyResponse: {
            /** @description Whether hubs are updated. */
            autoUpdate: boolean;
            /** @description The release channel that hubs follow. */
            channel: string;
            /**
             * Format: date-time
             * @description When the policy was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: uuid
             * @description The hub, of HUB.
             */
            hubUuid?: string | null;
            /**
             * Format: uuid
             * @description The policy.
             */
            policyUuid: string;
            /** @description How gradually a release is rolled out. */
            rollout: components["schemas"]["RolloutTerms"];
            /** @description The rollouts of the current release, one for each architecture that it is built for. A tenant sees none of the GLOBAL policy: they count the hubs of all tenants. */
            rollouts: components["schemas"]["AgentRolloutResponse"][];
            /** @description Which hubs it applies to. */
            scope: components["schemas"]["PolicyScope"];
            /**
             * Format: uuid
             * @description The tenant, of UNIT and HUB.
             */
            tenantUuid?: string | null;
            /**
             * Format: date-time
             * @description When the policy last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
            /** @description The version that hubs stay at. */
            version?: string | null;
            /** @description When in the day, in the time zone of each hub, an update may be applied. */
            window?: components["schemas"]["MaintenanceWindow"] | null;
        };
        /** @description An API key to create. */
        ApiKeyCreateRequest: {
            /**
             * Format: date-time
             * @description When the key expires, at most ten years ahead. This or `validForSeconds`, not both; the key does not expire when neither is given.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt?: string | null;
            /** @description A name for people. */
            name: string;
            /**
             * Format: int64
             * @description Requests allowed a minute; 600 when absent.
             */
            rateLimitPerMinute?: number | null;
            /** @description One scope or more, such as `hubs:read`; `catalog:*` stands for all scopes of a kind, `*` for all. */
            scopes: string[];
            /**
             * Format: int64
             * @description For how long the key is valid, at most ten years.
             */
            validForSeconds?: number | null;
        };
        /** @description An API key that was just created. */
        ApiKeyCreateResponse: {
            /** @description Whether the key can be used now. */
            active: boolean;
            /** @description The key itself. It is returned here and never again. */
            apiKey: string;
            /**
             * Format: int64
             * @description The id of the key.
             */
            apiKeyId: number;
            /**
             * Format: date-time
             * @description When the key was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: uuid
             * @description The user who created it.
             */
            createdBy: string;
            /**
             * Format: date-time
             * @description When the key expires; null when it does not.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt?: string | null;
            /** @description The beginning of the key, which identifies it. */
            keyPrefix: string;
            /**
             * Format: date-time
             * @description The last request with the key, accurate to a minute.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastUsedAt?: string | null;
            /** @description The name of the key. */
            name: string;
            /**
             * Format: int64
             * @description Requests allowed a minute.
             */
            rateLimitPerMinute: number;
            /** @description What the key may do. */
            scopes: string[];
        };
        /** @description An API key, without its secret. */
        ApiKeyListResponse: {
            /** @description Whether the key can be used now. */
            active: boolean;
            /**
             * Format: int64
             * @description The id of the key.
             */
            apiKeyId: number;
            /**
             * Format: date-time
             * @description When the key was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: uuid
             * @description The user who created it.
             */
            createdBy: string;
            /**
             * Format: date-time
             * @description When the key expires; null when it does not.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt?: string | null;
            /** @description The beginning of the key, which identifies it. */
            keyPrefix: string;
            /**
             * Format: date-time
             * @description The last request with the key, accurate to a minute.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastUsedAt?: string | null;
            /** @description The name of the key. */
            name: string;
            /**
             * Format: int64
             * @description Requests allowed a minute.
             */
            rateLimitPerMinute: number;
            /** @description What the key may do. */
            scopes: string[];
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone. */
        ApiKeyUpdateRequest: {
            /** @description A name for people. */
            name?: string | null;
            /**
             * Format: int64
             * @description Requests allowed a minute.
             */
            rateLimitPerMinute?: number | null;
            /** @description One scope or more, in place of all that the key had. */
            scopes?: string[] | null;
        };
        /** @description A success. */
        ApiResponseActionDefinitionResponse: {
            data: components["schemas"]["ActionDefinitionResponse"];
        };
        /** @description A success. */
        ApiResponseAdapterSnapshotResult: {
            data: components["schemas"]["AdapterSnapshotResult"];
        };
        /** @description A success. */
        ApiResponseAdapterView: {
            data: components["schemas"]["AdapterView"];
        };
        /** @description A success. */
        ApiResponseAgentReleaseResponse: {
            data: components["schemas"]["AgentReleaseResponse"];
        };
        /** @description A success. */
        ApiResponseAgentUpdatePolicyResponse: {
            data: components["schemas"]["AgentUpdatePolicyResponse"];
        };
        /** @description A success. */
        ApiResponseApiKeyCreateResponse: {
            data: components["schemas"]["ApiKeyCreateResponse"];
        };
        /** @description A success. */
        ApiResponseApiKeyListResponse: {
            data: components["schemas"]["ApiKeyListResponse"];
        };
        /** @description A success. */
        ApiResponseAppHubDetailResponse: {
            data: components["schemas"]["AppHubDetailResponse"];
        };
        /** @description A success. */
        ApiResponseAppProjectResponse: {
            data: components["schemas"]["AppProjectResponse"];
        };
        /** @description A success. */
        ApiResponseAppReleaseResponse: {
            data: components["schemas"]["AppReleaseResponse"];
        };
        /** @description A success. */
        ApiResponseAppResponse: {
            data: components["schemas"]["AppResponse"];
        };
        /** @description A success. */
        ApiResponseAppSensorDataResponse: {
            data: components["schemas"]["AppSensorDataResponse"];
        };
        /** @description A success. */
        ApiResponseAssetUrl: {
            data: components["schemas"]["AssetUrl"];
        };
        /** @description A success. */
        ApiResponseAuthorizeResponse: {
            data: components["schemas"]["AuthorizeResponse"];
        };
        /** @description A success. */
        ApiResponseBillingAnswer: {
            data: components["schemas"]["BillingAnswer"];
        };
        /** @description A success. */
        ApiResponseBleEventDetailResponse: {
            data: components["schemas"]["BleEventDetailResponse"];
        };
        /** @description A success. */
        ApiResponseBleEventResponse: {
            data: components["schemas"]["BleEventResponse"];
        };
        /** @description A success. */
        ApiResponseBleRouteConfigResponse: {
            data: components["schemas"]["BleRouteConfigResponse"];
        };
        /** @description A success. */
        ApiResponseBleUploadResult: {
            data: components["schemas"]["BleUploadResult"];
        };
        /** @description A success. */
        ApiResponseBrowserSession: {
            data: components["schemas"]["BrowserSession"];
        };
        /** @description A success. */
        ApiResponseBundleCatalogResponse: {
            data: components["schemas"]["BundleCatalogResponse"];
        };
        /** @description A success. */
        ApiResponseBundleResponse: {
            data: components["schemas"]["BundleResponse"];
        };
        /** @description A success. */
        ApiResponseCertificateIssueResponse: {
            data: components["schemas"]["CertificateIssueResponse"];
        };
        /** @description A success. */
        ApiResponseChargeSettings: {
            data: components["schemas"]["ChargeSettings"];
        };
        /** @description A success. */
        ApiResponseClaimCodeResponse: {
            data: components["schemas"]["ClaimCodeResponse"];
        };
        /** @description A success. */
        ApiResponseCompareResponse: {
            data: components["schemas"]["CompareResponse"];
        };
        /** @description A success. */
        ApiResponseConsentRecordResponse: {
            data: components["schemas"]["ConsentRecordResponse"];
        };
        /** @description A success. */
        ApiResponseConsentSettingResponse: {
            data: components["schemas"]["ConsentSettingResponse"];
        };
        /** @description A success. */
        ApiResponseDashboardSummary: {
            data: components["schemas"]["DashboardSummary"];
        };
        /** @description A success. */
        ApiResponseDeletedExternalEndpoint: {
            data: components["schemas"]["DeletedExternalEndpoint"];
        };
        /** @description A success. */
        ApiResponseDesiredState: {
            data: components["schemas"]["DesiredState"];
        };
        /** @description A success. */
        ApiResponseDevProjectResponse: {
            data: components["schemas"]["DevProjectResponse"];
        };
        /** @description A success. */
        ApiResponseDeviceCatalogResponse: {
            data: components["schemas"]["DeviceCatalogResponse"];
        };
        /** @description A success. */
        ApiResponseDeviceCommandResponse: {
            data: components["schemas"]["DeviceCommandResponse"];
        };
        /** @description A success. */
        ApiResponseDeviceDetailResponse: {
            data: components["schemas"]["DeviceDetailResponse"];
        };
        /** @description A success. */
        ApiResponseDeviceInstanceResponse: {
            data: components["schemas"]["DeviceInstanceResponse"];
        };
        /** @description A success. */
        ApiResponseDeviceManualResponse: {
            data: components["schemas"]["DeviceManualResponse"];
        };
        /** @description A success. */
        ApiResponseDeviceMatchIdentifierResponse: {
            data: components["schemas"]["DeviceMatchIdentifierResponse"];
        };
        /** @description A success. */
        ApiResponseDeviceProtocolResponse: {
            data: components["schemas"]["DeviceProtocolResponse"];
        };
        /** @description A success. */
        ApiResponseDeviceProtocolTestResult: {
            data: components["schemas"]["DeviceProtocolTestResult"];
        };
        /** @description A success. */
        ApiResponseDeviceQueryResponse: {
            data: components["schemas"]["DeviceQueryResponse"];
        };
        /** @description A success. */
        ApiResponseDeviceUiAnswer: {
            data: components["schemas"]["DeviceUiAnswer"];
        };
        /** @description A success. */
        ApiResponseDeviceUiResponse: {
            data: components["schemas"]["DeviceUiResponse"];
        };
        /** @description A success. */
        ApiResponseDeviceUiSetupResponse: {
            data: components["schemas"]["DeviceUiSetupResponse"];
        };
        /** @description A success. */
        ApiResponseDeviceVersionResponse: {
            data: components["schemas"]["DeviceVersionResponse"];
        };
        /** @description A success. */
        ApiResponseDiagnosticsResponse: {
            data: components["schemas"]["DiagnosticsResponse"];
        };
        /** @description A success. */
        ApiResponseDownloadManifest: {
            data: components["schemas"]["DownloadManifest"];
        };
        /** @description A success. */
        ApiResponseExternalEndpointResponse: {
            data: components["schemas"]["ExternalEndpointResponse"];
        };
        /** @description A success. */
        ApiResponseFloorPlanResponse: {
            data: components["schemas"]["FloorPlanResponse"];
        };
        /** @description A success. */
        ApiResponseHealth: {
            data: components["schemas"]["Health"];
        };
        /** @description A success. */
        ApiResponseHubAccess: {
            data: components["schemas"]["HubAccess"];
        };
        /** @description A success. */
        ApiResponseHubBlockResponse: {
            data: components["schemas"]["HubBlockResponse"];
        };
        /** @description A success. */
        ApiResponseHubCredentials: {
            data: components["schemas"]["HubCredentials"];
        };
        /** @description A success. */
        ApiResponseHubDetailResponse: {
            data: components["schemas"]["HubDetailResponse"];
        };
        /** @description A success. */
        ApiResponseHubJobDetailResponse: {
            data: components["schemas"]["HubJobDetailResponse"];
        };
        /** @description A success. */
        ApiResponseHubJobResponse: {
            data: components["schemas"]["HubJobResponse"];
        };
        /** @description A success. */
        ApiResponseHubJobUuid: {
            /**
             * Format: uuid
             * @description A job of a hub.
             */
            data: string;
        };
        /** @description A success. */
        ApiResponseHubReleaseResponse: {
            data: components["schemas"]["HubReleaseResponse"];
        };
        /** @description A success. */
        ApiResponseHubTest: {
            data: components["schemas"]["HubTest"];
        };
        /** @description A success. */
        ApiResponseInvalidatedProject: {
            data: components["schemas"]["InvalidatedProject"];
        };
        /** @description A success. */
        ApiResponseInviteResponse: {
            data: components["schemas"]["InviteResponse"];
        };
        /** @description A success. */
        ApiResponseLibraryModelDetailResponse: {
            data: components["schemas"]["LibraryModelDetailResponse"];
        };
        /** @description A success. */
        ApiResponseListActionDefinitionResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["ActionDefinitionResponse"][];
        };
        /** @description A success. */
        ApiResponseListActivationEventResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["ActivationEventResponse"][];
        };
        /** @description A success. */
        ApiResponseListAdapterView: {
            /** @description What was asked for. */
            data: components["schemas"]["AdapterView"][];
        };
        /** @description A success. */
        ApiResponseListAgentReleaseResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["AgentReleaseResponse"][];
        };
        /** @description A success. */
        ApiResponseListAgentUpdatePolicyResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["AgentUpdatePolicyResponse"][];
        };
        /** @description A success. */
        ApiResponseListApiKeyListResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["ApiKeyListResponse"][];
        };
        /** @description A success. */
        ApiResponseListAppHubSummaryResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["AppHubSummaryResponse"][];
        };
        /** @description A success. */
        ApiResponseListAppProjectResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["AppProjectResponse"][];
        };
        /** @description A success. */
        ApiResponseListAppReleaseResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["AppReleaseResponse"][];
        };
        /** @description A success. */
        ApiResponseListAppResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["AppResponse"][];
        };
        /** @description A success. */
        ApiResponseListBleDeliveryResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["BleDeliveryResponse"][];
        };
        /** @description A success. */
        ApiResponseListBleEventResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["BleEventResponse"][];
        };
        /** @description A success. */
        ApiResponseListBleProcessingRunResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["BleProcessingRunResponse"][];
        };
        /** @description A success. */
        ApiResponseListBundleAppResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["BundleAppResponse"][];
        };
        /** @description A success. */
        ApiResponseListBundleCatalogResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["BundleCatalogResponse"][];
        };
        /** @description A success. */
        ApiResponseListBundleDeviceResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["BundleDeviceResponse"][];
        };
        /** @description A success. */
        ApiResponseListBundleResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["BundleResponse"][];
        };
        /** @description A success. */
        ApiResponseListClaimCodeResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["ClaimCodeResponse"][];
        };
        /** @description A success. */
        ApiResponseListConsentRecordResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["ConsentRecordResponse"][];
        };
        /** @description A success. */
        ApiResponseListDevPersonaProject: {
            /** @description What was asked for. */
            data: components["schemas"]["DevPersonaProject"][];
        };
        /** @description A success. */
        ApiResponseListDevProjectAuthz: {
            /** @description What was asked for. */
            data: components["schemas"]["DevProjectAuthz"][];
        };
        /** @description A success. */
        ApiResponseListDeviceCatalogResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["DeviceCatalogResponse"][];
        };
        /** @description A success. */
        ApiResponseListDeviceCommandResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["DeviceCommandResponse"][];
        };
        /** @description A success. */
        ApiResponseListDeviceInstanceResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["DeviceInstanceResponse"][];
        };
        /** @description A success. */
        ApiResponseListDeviceManualResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["DeviceManualResponse"][];
        };
        /** @description A success. */
        ApiResponseListDeviceMatchIdentifierResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["DeviceMatchIdentifierResponse"][];
        };
        /** @description A success. */
        ApiResponseListDeviceProtocolResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["DeviceProtocolResponse"][];
        };
        /** @description A success. */
        ApiResponseListDeviceReceptionsResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["DeviceReceptionsResponse"][];
        };
        /** @description A success. */
        ApiResponseListDeviceSummaryResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["DeviceSummaryResponse"][];
        };
        /** @description A success. */
        ApiResponseListDeviceUiResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["DeviceUiResponse"][];
        };
        /** @description A success. */
        ApiResponseListDeviceVersionResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["DeviceVersionResponse"][];
        };
        /** @description A success. */
        ApiResponseListDlqMessageResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["DlqMessageResponse"][];
        };
        /** @description A success. */
        ApiResponseListExternalEndpointResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["ExternalEndpointResponse"][];
        };
        /** @description A success. */
        ApiResponseListFeedEntry: {
            /** @description What was asked for. */
            data: components["schemas"]["FeedEntry"][];
        };
        /** @description A success. */
        ApiResponseListFloorPlanResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["FloorPlanResponse"][];
        };
        /** @description A success. */
        ApiResponseListHubBundleResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["HubBundleResponse"][];
        };
        /** @description A success. */
        ApiResponseListHubInstalledAppResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["HubInstalledAppResponse"][];
        };
        /** @description A success. */
        ApiResponseListHubJobResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["HubJobResponse"][];
        };
        /** @description A success. */
        ApiResponseListHubLogResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["HubLogResponse"][];
        };
        /** @description A success. */
        ApiResponseListHubSummaryResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["HubSummaryResponse"][];
        };
        /** @description A success. */
        ApiResponseListHubTelemetryResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["HubTelemetryResponse"][];
        };
        /** @description A success. */
        ApiResponseListInstalledAppView: {
            /** @description What was asked for. */
            data: components["schemas"]["InstalledAppView"][];
        };
        /** @description A success. */
        ApiResponseListInviteCandidate: {
            /** @description What was asked for. */
            data: components["schemas"]["InviteCandidate"][];
        };
        /** @description A success. */
        ApiResponseListLibraryModelResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["LibraryModelResponse"][];
        };
        /** @description A success. */
        ApiResponseListNotificationResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["NotificationResponse"][];
        };
        /** @description A success. */
        ApiResponseListNotificationSettingResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["NotificationSettingResponse"][];
        };
        /** @description A success. */
        ApiResponseListPipelineConfigResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["PipelineConfigResponse"][];
        };
        /** @description A success. */
        ApiResponseListPlatformHubResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["PlatformHubResponse"][];
        };
        /** @description A success. */
        ApiResponseListPlatformTenantResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["PlatformTenantResponse"][];
        };
        /** @description A success. */
        ApiResponseListProjectDeviceResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["ProjectDeviceResponse"][];
        };
        /** @description A success. */
        ApiResponseListProjectTenantResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["ProjectTenantResponse"][];
        };
        /** @description A success. */
        ApiResponseListQuantityResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["QuantityResponse"][];
        };
        /** @description A success. */
        ApiResponseListRegistrationEventResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["RegistrationEventResponse"][];
        };
        /** @description A success. */
        ApiResponseListReplayResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["ReplayResponse"][];
        };
        /** @description A success. */
        ApiResponseListSensorDataResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["SensorDataResponse"][];
        };
        /** @description A success. */
        ApiResponseListSetupDelegationResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["SetupDelegationResponse"][];
        };
        /** @description A success. */
        ApiResponseListSimulationPreset: {
            /** @description What was asked for. */
            data: components["schemas"]["SimulationPreset"][];
        };
        /** @description A success. */
        ApiResponseListSimulationResult: {
            /** @description What was asked for. */
            data: components["schemas"]["SimulationResult"][];
        };
        /** @description A success. */
        ApiResponseListSupplierLinkResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["SupplierLinkResponse"][];
        };
        /** @description A success. */
        ApiResponseListSupplierOauthApprovalResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["SupplierOauthApprovalResponse"][];
        };
        /** @description A success. */
        ApiResponseListTenantMemberResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["TenantMemberResponse"][];
        };
        /** @description A success. */
        ApiResponseListTenantResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["TenantResponse"][];
        };
        /** @description A success. */
        ApiResponseListTenantTransferRequestResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["TenantTransferRequestResponse"][];
        };
        /** @description A success. */
        ApiResponseListTimelinePeriodResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["TimelinePeriodResponse"][];
        };
        /** @description A success. */
        ApiResponseListUnknownAdvertiserResponse: {
            /** @description What was asked for. */
            data: components["schemas"]["UnknownAdvertiserResponse"][];
        };
        /** @description A success. */
        ApiResponseListUuid: {
            /** @description What was asked for. */
            data: string[];
        };
        /** @description A success. */
        ApiResponseNotificationSettingResponse: {
            data: components["schemas"]["NotificationSettingResponse"];
        };
        /** @description A success. */
        ApiResponsePageAuditLogResponse: {
            data: components["schemas"]["PageAuditLogResponse"];
        };
        /** @description A success. */
        ApiResponsePageBleDeliveryResponse: {
            data: components["schemas"]["PageBleDeliveryResponse"];
        };
        /** @description A success. */
        ApiResponsePageBleEventResponse: {
            data: components["schemas"]["PageBleEventResponse"];
        };
        /** @description A success. */
        ApiResponsePageHubJobEventResponse: {
            data: components["schemas"]["PageHubJobEventResponse"];
        };
        /** @description A success. */
        ApiResponsePageHubJobResponse: {
            data: components["schemas"]["PageHubJobResponse"];
        };
        /** @description A success. */
        ApiResponsePageHubLogResponse: {
            data: components["schemas"]["PageHubLogResponse"];
        };
        /** @description A success. */
        ApiResponsePageHubTelemetryResponse: {
            data: components["schemas"]["PageHubTelemetryResponse"];
        };
        /** @description A success. */
        ApiResponsePairingOfferResponse: {
            data: components["schemas"]["PairingOfferResponse"];
        };
        /** @description A success. */
        ApiResponsePartnerProjectResponse: {
            data: components["schemas"]["PartnerProjectResponse"];
        };
        /** @description A success. */
        ApiResponsePermissionCacheResponse: {
            data: components["schemas"]["PermissionCacheResponse"];
        };
        /** @description A success. */
        ApiResponsePipelineConfigResponse: {
            data: components["schemas"]["PipelineConfigResponse"];
        };
        /** @description A success. */
        ApiResponsePipelineTestResult: {
            data: components["schemas"]["PipelineTestResult"];
        };
        /** @description A success. */
        ApiResponsePlatformTenantDetailResponse: {
            data: components["schemas"]["PlatformTenantDetailResponse"];
        };
        /** @description A success. */
        ApiResponsePublicInvitationResponse: {
            data: components["schemas"]["PublicInvitationResponse"];
        };
        /** @description A success. */
        ApiResponseRegistrationEventResponse: {
            data: components["schemas"]["RegistrationEventResponse"];
        };
        /** @description A success. */
        ApiResponseReleaseFileResponse: {
            data: components["schemas"]["ReleaseFileResponse"];
        };
        /** @description A success. */
        ApiResponseReleaseOffer: {
            data: components["schemas"]["ReleaseOffer"];
        };
        /** @description A success. */
        ApiResponseReplayStartedResponse: {
            data: components["schemas"]["ReplayStartedResponse"];
        };
        /** @description A success. */
        ApiResponseReprocessPreviewResponse: {
            data: components["schemas"]["ReprocessPreviewResponse"];
        };
        /** @description A success. */
        ApiResponseReprocessResponse: {
            data: components["schemas"]["ReprocessResponse"];
        };
        /** @description A success. */
        ApiResponseReprocessTaskResponse: {
            data: components["schemas"]["ReprocessTaskResponse"];
        };
        /** @description A success. */
        ApiResponseRetentionSettingResponse: {
            data: components["schemas"]["RetentionSettingResponse"];
        };
        /** @description A success. */
        ApiResponseRetryResponse: {
            data: components["schemas"]["RetryResponse"];
        };
        /** @description A success. */
        ApiResponseScanConfig: {
            data: components["schemas"]["ScanConfig"];
        };
        /** @description A success. */
        ApiResponseSession: {
            data: components["schemas"]["Session"];
        };
        /** @description A success. */
        ApiResponseSetupDelegationResponse: {
            data: components["schemas"]["SetupDelegationResponse"];
        };
        /** @description A success. */
        ApiResponseSignInMethods: {
            data: components["schemas"]["SignInMethods"];
        };
        /** @description A success. */
        ApiResponseSimulationResult: {
            data: components["schemas"]["SimulationResult"];
        };
        /** @description A success. */
        ApiResponseSupplierAccessToken: {
            data: components["schemas"]["SupplierAccessToken"];
        };
        /** @description A success. */
        ApiResponseSupplierConsentResponse: {
            data: components["schemas"]["SupplierConsentResponse"];
        };
        /** @description A success. */
        ApiResponseSupplierLinkRevoked: {
            data: components["schemas"]["SupplierLinkRevoked"];
        };
        /** @description A success. */
        ApiResponseSupplierOauthConfigDeleted: {
            data: components["schemas"]["SupplierOauthConfigDeleted"];
        };
        /** @description A success. */
        ApiResponseSupplierOauthConfigResponse: {
            data: components["schemas"]["SupplierOauthConfigResponse"];
        };
        /** @description A success. */
        ApiResponseSupplierPermissionResponse: {
            data: components["schemas"]["SupplierPermissionResponse"];
        };
        /** @description A success. */
        ApiResponseTenantInvitationResponse: {
            data: components["schemas"]["TenantInvitationResponse"];
        };
        /** @description A success. */
        ApiResponseTenantLimits: {
            data: components["schemas"]["TenantLimits"];
        };
        /** @description A success. */
        ApiResponseTenantMemberResponse: {
            data: components["schemas"]["TenantMemberResponse"];
        };
        /** @description A success. */
        ApiResponseTenantPersonasResponse: {
            data: components["schemas"]["TenantPersonasResponse"];
        };
        /** @description A success. */
        ApiResponseTenantResponse: {
            data: components["schemas"]["TenantResponse"];
        };
        /** @description A success. */
        ApiResponseTenantTransferRequestResponse: {
            data: components["schemas"]["TenantTransferRequestResponse"];
        };
        /** @description A success. */
        ApiResponseTranspileResponse: {
            data: components["schemas"]["TranspileResponse"];
        };
        /** @description A success. */
        ApiResponseUserProfileResponse: {
            data: components["schemas"]["UserProfileResponse"];
        };
        /** @description A success. */
        ApiResponseVoid: {
            /** @description What was asked for. */
            data: null;
        };
        /** @description An app to create. */
        AppCreateRequest: {
            /** @description A text for people. */
            description?: string | null;
            /** @description As the manifests of its releases have it; unique within the tenant. */
            name: string;
        };
        /** @description A hub of the caller, with its devices. */
        AppHubDetailResponse: {
            /** @description Its Bluetooth adapters. */
            adapters: components["schemas"]["AdapterView"][];
            /** @description Whether the hub is not the caller's own, and only delegated to them. */
            delegated: boolean;
            /**
             * Format: int64
             * @description The devices that it hears best, since it is the caller's.
             */
            deviceCount: number;
            /** @description Its devices, newest first; the first 100. `/app/devices?hubUuid=` has all. */
            devices: components["schemas"]["DeviceSummaryResponse"][];
            /** @description Its label. */
            hubIdentifier?: string | null;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: date-time
             * @description When it was last in contact.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastSeenAt?: string | null;
            /** @description Whether telemetry arrived within the last 10 minutes. */
            online: boolean;
            /** @description The name of the supplier. */
            supplierName: string;
            /**
             * Format: uuid
             * @description The supplier that it belongs to.
             */
            supplierUuid: string;
        };
        /** @description A hub of the caller. */
        AppHubSummaryResponse: {
            /**
             * Format: int64
             * @description The devices that it hears best, since it is the caller's.
             */
            deviceCount: number;
            /** @description Its label. */
            hubIdentifier?: string | null;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: date-time
             * @description When it was last in contact.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastSeenAt?: string | null;
            /** @description Whether telemetry arrived within the last 10 minutes. */
            online: boolean;
            /** @description The name of the supplier. */
            supplierName: string;
            /**
             * Format: uuid
             * @description The supplier that it belongs to.
             */
            supplierUuid: string;
        };
        /** @description What to install. */
        AppInstallRequest: {
            /**
             * Format: uuid
             * @description A READY release of an app of the tenant that the hub can run.
             */
            appReleaseUuid: string;
            /**
             * Format: date-time
             * @description When the job expires if it has not finished, at most a year ahead. This or `validForSeconds`, not both; 7 days from now when neither is given.
             * @example 2026-01-31T08:00:00.000000Z
             */
            deadlineAt?: string | null;
            /** @description Whether to try a release that failed on this hub before. */
            force?: boolean | null;
            /**
             * Format: int64
             * @description For how long the job may run before it expires, at most a year.
             */
            validForSeconds?: number | null;
        };
        /** @description A project of the caller. */
        AppProjectResponse: {
            /**
             * Format: int64
             * @description How many devices take part.
             */
            deviceCount: number;
            /** @description Its name. */
            name: string;
            /** @description The project, as the partner names it. */
            projectId: string;
            /** @description The role of the caller, as the partner says. */
            role: string;
            /** @description The tenants that take part. */
            tenants: components["schemas"]["ProjectTenantResponse"][];
        };
        /** @description A signed release of an app. */
        AppReleaseCreateRequest: {
            /** @description The text of the manifest that was signed, byte for byte: FILE.manifest.json of `hub-cloud release sign`. Its kind is APP, its name that of the app. */
            manifest: string;
            /** @description The text of its minisign signature, by one of the keys that the service trusts: FILE.manifest.json.minisig. */
            signature: string;
        };
        /** @description A release of an app. */
        AppReleaseResponse: {
            /**
             * Format: uuid
             * @description The app.
             */
            appUuid: string;
            /** @description The architecture that it is built for, as `uname -m` names it, or `any`. */
            architecture: string;
            /**
             * Format: int64
             * @description Grows with every release of the same name.
             */
            counter: number;
            /**
             * Format: date-time
             * @description When the release was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description The manifest, byte for byte as it was signed. */
            manifest: string;
            /**
             * Format: date-time
             * @description When its file was stored.
             * @example 2026-01-31T08:00:00.000000Z
             */
            readyAt?: string | null;
            /**
             * Format: uuid
             * @description The release.
             */
            releaseUuid: string;
            /** @description The SHA-256 digest of the file, in lower-case hex. */
            sha256: string;
            /** @description A minisign signature of `manifest`. */
            signature: string;
            /**
             * Format: int64
             * @description The size of the file.
             */
            sizeBytes: number;
            /** @description Whether its file is available. */
            status: components["schemas"]["ReleaseStatus"];
            /** @description `PUT` the file here: a path of this service while it has no `public-url`. Returned when the release is created; the same manifest sent again gets another while the file is missing, and none once it is stored. */
            uploadUrl?: string | null;
            /**
             * Format: date-time
             * @description When that URL expires: an hour later.
             * @example 2026-01-31T08:00:00.000000Z
             */
            uploadUrlExpiresAt?: string | null;
            /** @description The version of the release. */
            version: string;
        };
        /** @description An app of a tenant. */
        AppResponse: {
            /**
             * Format: uuid
             * @description The app.
             */
            appUuid: string;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description A text for people. */
            description?: string | null;
            /** @description Its name, as the manifests of its releases have it. */
            name: string;
        };
        /** @description The values of a device. */
        AppSensorDataResponse: {
            /** @description One item for each reception, latest first; in buckets, oldest first. */
            items: components["schemas"]["SensorDataResponse"][];
        };
        /**
         * @description What became of the last change of a configuration.
         *
         *     - `PENDING`: It waits for the platform; what was in force before still is.
         *     - `APPROVED`: It is in force.
         *     - `REJECTED`: The platform refused it.
         *     - `SUPERSEDED`: A later change took its place before it was decided.
         * @enum {string}
         */
        ApprovalStatus: "PENDING" | "APPROVED" | "REJECTED" | "SUPERSEDED";
        /** @description Where a file is. */
        AssetUrl: {
            /**
             * Format: date-time
             * @description When the URL expires: five minutes later.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt: string;
            /** @description The SHA-256 digest of the file, in lower-case hex. */
            sha256: string;
            /**
             * Format: int64
             * @description The size of the file.
             */
            sizeBytes: number;
            /** @description Accepts range requests and needs no credential. A path of this service while it has no `public-url`, or a URL of another store. */
            url: string;
        };
        /** @description Who changed something. */
        AuditActor: {
            /**
             * Format: int64
             * @description The API key.
             */
            apiKeyId?: number | null;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid?: string | null;
            /** @description The name of the worker or command. */
            name?: string | null;
            /**
             * Format: uuid
             * @description The persona that the user acted as.
             */
            personaUuid?: string | null;
            /** @description The kind of actor. */
            type: components["schemas"]["ActorType"];
            /**
             * Format: uuid
             * @description The user.
             */
            userUuid?: string | null;
        };
        /** @description One change. */
        AuditLogResponse: {
            /** @description What was done, such as `hub.update`. */
            action: string;
            /** @description The author of the change. */
            actor: components["schemas"]["AuditActor"];
            /** @description The address that the request came from. */
            address?: string | null;
            /** @description The object after, as far as it changed; null when it is gone. */
            after?: unknown;
            /**
             * Format: int64
             * @description The id of the entry.
             */
            auditLogId: number;
            /** @description The object before, as far as it changed; null when it is new. */
            before?: unknown;
            /**
             * Format: date-time
             * @description The time of the change.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description What else there is to know. */
            detail: unknown;
            /** @description The object. */
            objectId: string;
            /** @description The type of the object: the first half of the action. */
            objectType: string;
            /** @description The `X-Request-Id` of the request. */
            requestId?: string | null;
            /**
             * Format: uuid
             * @description The tenant; null where no single tenant is concerned.
             */
            tenantUuid?: string | null;
        };
        /** @description Which supplier to link, and where to go afterwards. */
        AuthorizeRequest: {
            /** @description One of the supplier's `return_urls`, to be sent back to with `status=linked` or `status=failed`. A page is shown when absent. */
            returnUrl?: string | null;
            /**
             * Format: uuid
             * @description The supplier.
             */
            supplierUuid: string;
        };
        /** @description An authorization that has begun. */
        AuthorizeResponse: {
            /** @description The page of the supplier to open in the user's browser. */
            authorizeUrl: string;
            /** @description What the supplier sends the browser back with. It is valid once, for ten minutes. */
            state: string;
        };
        /** @description What a beacon sends. An iBeacon has `uuid`, `major` and `minor`; an Eddystone-UID beacon has `namespace` and `instance`. */
        Beacon: {
            /** @description The instance of an Eddystone-UID beacon: 6 bytes as hex digits. */
            instance?: string | null;
            /**
             * Format: int64
             * @description The major number of an iBeacon.
             */
            major?: number | null;
            /**
             * Format: int64
             * @description The minor number of an iBeacon.
             */
            minor?: number | null;
            /** @description The namespace of an Eddystone-UID beacon: 10 bytes as hex digits. */
            namespace?: string | null;
            /**
             * Format: uuid
             * @description The proximity UUID of an iBeacon.
             */
            uuid?: string | null;
        };
        /** @description What the billing service answers, as it is. */
        BillingAnswer: {
            [key: string]: unknown;
        };
        /**
         * @description What is known of the key that a device encrypts its advertisements with.
         *
         *     - `NONE`: There is none.
         *     - `SET`: There is one, and no advertisement has been read with it yet.
         *     - `VERIFIED`: Advertisements are read with it.
         *     - `WRONG`: It does not fit what the device sends.
         * @enum {string}
         */
        BindKeyStatus: "NONE" | "SET" | "VERIFIED" | "WRONG";
        /** @description An attempt to deliver a message. */
        BleDeliveryResponse: {
            /**
             * Format: int64
             * @description Which attempt it was for this message, from 1.
             */
            attempt: number;
            /**
             * Format: int64
             * @description The attempt.
             */
            deliveryId: number;
            /**
             * Format: int64
             * @description How long it took.
             */
            durationMillis: number;
            /** @description Why it failed, for people; null if it did not. */
            error?: string | null;
            /** @description The events in the message. */
            eventIds: number[];
            /**
             * Format: int64
             * @description How many they are.
             */
            events: number;
            /**
             * Format: uuid
             * @description The pipeline, which may have been deleted since.
             */
            pipelineUuid: string;
            /** @description The first KiB of its answer; null if there was none. */
            responseBody?: string | null;
            /**
             * Format: int64
             * @description The status that the receiver answered; null if it answered none.
             */
            responseStatus?: number | null;
            /**
             * Format: int64
             * @description The revision that made the message.
             */
            revision: number;
            /**
             * Format: date-time
             * @description When it began.
             * @example 2026-01-31T08:00:00.000000Z
             */
            startedAt: string;
            /** @description What came of it. */
            status: components["schemas"]["DeliveryOutcome"];
        };
        /** @description One device within a window, with the payload that it sent last. */
        BleDeviceWindow: {
            /** @description The adapter that received it. */
            adapterAddress?: string | null;
            /** @description The address of the advertiser, such as `AA:BB:CC:DD:EE:FF`. */
            address: string;
            /** @description `public` or `random`. */
            addressType?: string | null;
            /**
             * Format: int64
             * @description Advertisements received.
             */
            count: number;
            /**
             * Format: int64
             * @description The registered device that sent it, where it is known.
             */
            deviceInstanceId?: number | null;
            /**
             * Format: date-time
             * @description The first advertisement of the window.
             * @example 2026-01-31T08:00:00.000000Z
             */
            firstSeenAt: string;
            /**
             * Format: date-time
             * @description The last advertisement of the window.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastSeenAt: string;
            /** @description Payload by company identifier: 4 lower-case hex digits (Bluetooth assigned numbers). */
            manufacturerData?: {
                [key: string]: string;
            };
            /** @description The name of the device, at most 248 bytes. */
            name?: string | null;
            /**
             * Format: int16
             * @description Signal strength in dBm.
             */
            rssi?: number | null;
            /**
             * Format: int16
             * @description The strongest signal, in dBm.
             */
            rssiMax: number;
            /**
             * Format: double
             * @description The mean of the signal strengths, in dBm.
             */
            rssiMean: number;
            /**
             * Format: int16
             * @description The weakest signal, in dBm.
             */
            rssiMin: number;
            /** @description Payload by service UUID: 4 lower-case hex digits, or a longer UUID in full. */
            serviceData?: {
                [key: string]: string;
            };
            /** @description Services: 4 lower-case hex digits, or a longer UUID in full. */
            serviceUuids?: string[];
            /**
             * Format: int16
             * @description Transmit power in dBm, as advertised.
             */
            txPower?: number | null;
        };
        /** @description One advertisement as one adapter received it. */
        BleEvent: {
            /** @description The adapter that received it. */
            adapterAddress?: string | null;
            /** @description The address of the advertiser, such as `AA:BB:CC:DD:EE:FF`. */
            address: string;
            /** @description `public` or `random`. */
            addressType?: string | null;
            /**
             * Format: int64
             * @description The registered device that sent it, where it is known.
             */
            deviceInstanceId?: number | null;
            /**
             * Format: uuid
             * @description Identifies the event, where the hub gave it an id.
             */
            eventUuid?: string | null;
            /** @description Payload by company identifier: 4 lower-case hex digits (Bluetooth assigned numbers). */
            manufacturerData?: {
                [key: string]: string;
            };
            /** @description The name of the device, at most 248 bytes. */
            name?: string | null;
            /**
             * Format: date-time
             * @description When the adapter received it, by the clock of the hub.
             * @example 2026-01-31T08:00:00.000000Z
             */
            observedAt: string;
            /**
             * Format: int16
             * @description Signal strength in dBm.
             */
            rssi?: number | null;
            /** @description Payload by service UUID: 4 lower-case hex digits, or a longer UUID in full. */
            serviceData?: {
                [key: string]: string;
            };
            /** @description Services: 4 lower-case hex digits, or a longer UUID in full. */
            serviceUuids?: string[];
            /**
             * Format: int16
             * @description Transmit power in dBm, as advertised.
             */
            txPower?: number | null;
        };
        /** @description One BLE event with all that is known of it. */
        BleEventDetailResponse: {
            /** @description The adapter that received it. */
            adapterAddress?: string | null;
            /** @description The address of the advertiser, such as `AA:BB:CC:DD:EE:FF`. */
            address: string;
            /** @description `public` or `random`. */
            addressType?: string | null;
            /**
             * Format: int64
             * @description The id: `receivedAt` in microseconds since 1970, unique and rising within the tenant.
             */
            bleEventId: number;
            /** @description What is wrong with its counter, if anything is. */
            counterStatus?: components["schemas"]["CounterStatus"] | null;
            /** @description Whether it has reached its destinations. */
            deliveryStatus: components["schemas"]["DeliveryStatus"];
            /**
             * Format: int64
             * @description The registered device that sent it, where it is known.
             */
            deviceInstanceId?: number | null;
            /**
             * Format: uuid
             * @description The model of the device that sent it; null if it is not known.
             */
            deviceUuid?: string | null;
            /**
             * Format: uuid
             * @description The id that the hub gave it.
             */
            eventUuid?: string | null;
            /**
             * Format: uuid
             * @description The hub that uploaded it.
             */
            hubUuid: string;
            /** @description Payload by company identifier: 4 lower-case hex digits (Bluetooth assigned numbers). */
            manufacturerData?: {
                [key: string]: string;
            };
            /** @description The values that were read from it. */
            measurements: components["schemas"]["MeasurementResponse"][];
            /** @description The name of the device, at most 248 bytes. */
            name?: string | null;
            /**
             * Format: date-time
             * @description When the hub received it; of a window, the last time.
             * @example 2026-01-31T08:00:00.000000Z
             */
            observedAt: string;
            /** @description What the service has made of it. */
            processingStatus: components["schemas"]["ProcessingStatus"];
            /**
             * Format: int64
             * @description The revision of the protocol that read it; null if none did.
             */
            protocolRevision?: number | null;
            /** @description With `includeRaw=true`: base64 of the JSON object exactly as the hub sent it, members that the service does not know included. */
            raw?: string | null;
            /**
             * Format: date-time
             * @description When the service received it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            receivedAt: string;
            /** @description With `view=observations`, in lists: all receptions of the frame, this one first; 64 at most. */
            receptions?: components["schemas"]["ReceptionResponse"][] | null;
            /**
             * Format: int16
             * @description Signal strength in dBm.
             */
            rssi?: number | null;
            /** @description Payload by service UUID: 4 lower-case hex digits, or a longer UUID in full. */
            serviceData?: {
                [key: string]: string;
            };
            /** @description Services: 4 lower-case hex digits, or a longer UUID in full. */
            serviceUuids?: string[];
            /**
             * Format: int16
             * @description Transmit power in dBm, as advertised.
             */
            txPower?: number | null;
            /** @description Of a windowed upload: what was received from the device in the window. */
            window?: components["schemas"]["WindowResponse"] | null;
        };
        /** @description One BLE event as lists and streams show it. */
        BleEventResponse: {
            /** @description The adapter that received it. */
            adapterAddress?: string | null;
            /** @description The address of the advertiser, such as `AA:BB:CC:DD:EE:FF`. */
            address: string;
            /** @description `public` or `random`. */
            addressType?: string | null;
            /**
             * Format: int64
             * @description The id: `receivedAt` in microseconds since 1970, unique and rising within the tenant.
             */
            bleEventId: number;
            /** @description What is wrong with its counter, if anything is. */
            counterStatus?: components["schemas"]["CounterStatus"] | null;
            /** @description Whether it has reached its destinations. */
            deliveryStatus: components["schemas"]["DeliveryStatus"];
            /**
             * Format: int64
             * @description The registered device that sent it, where it is known.
             */
            deviceInstanceId?: number | null;
            /**
             * Format: uuid
             * @description The model of the device that sent it; null if it is not known.
             */
            deviceUuid?: string | null;
            /**
             * Format: uuid
             * @description The id that the hub gave it.
             */
            eventUuid?: string | null;
            /**
             * Format: uuid
             * @description The hub that uploaded it.
             */
            hubUuid: string;
            /** @description Payload by company identifier: 4 lower-case hex digits (Bluetooth assigned numbers). */
            manufacturerData?: {
                [key: string]: string;
            };
            /** @description The values that were read from it. */
            measurements: components["schemas"]["MeasurementResponse"][];
            /** @description The name of the device, at most 248 bytes. */
            name?: string | null;
            /**
             * Format: date-time
             * @description When the hub received it; of a window, the last time.
             * @example 2026-01-31T08:00:00.000000Z
             */
            observedAt: string;
            /** @description What the service has made of it. */
            processingStatus: components["schemas"]["ProcessingStatus"];
            /**
             * Format: int64
             * @description The revision of the protocol that read it; null if none did.
             */
            protocolRevision?: number | null;
            /**
             * Format: date-time
             * @description When the service received it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            receivedAt: string;
            /** @description With `view=observations`, in lists: all receptions of the frame, this one first; 64 at most. */
            receptions?: components["schemas"]["ReceptionResponse"][] | null;
            /**
             * Format: int16
             * @description Signal strength in dBm.
             */
            rssi?: number | null;
            /** @description Payload by service UUID: 4 lower-case hex digits, or a longer UUID in full. */
            serviceData?: {
                [key: string]: string;
            };
            /** @description Services: 4 lower-case hex digits, or a longer UUID in full. */
            serviceUuids?: string[];
            /**
             * Format: int16
             * @description Transmit power in dBm, as advertised.
             */
            txPower?: number | null;
            /** @description Of a windowed upload: what was received from the device in the window. */
            window?: components["schemas"]["WindowResponse"] | null;
        };
        /** @description `POST /v1/ble/events`: BLE events. */
        BleEventUploadRequest: {
            /**
             * Format: uuid
             * @description Chosen by the hub before it sends; the same batch is stored once, for 7 days.
             */
            batchUuid: string;
            /** @description The events. One that is not valid is rejected by its index; the others are stored. */
            events: components["schemas"]["BleEvent"][];
        };
        /**
         * @description What an item of a list is.
         *
         *     - `receptions`: Each event as a hub received it.
         *     - `observations`: Events that are of one frame as one: the first of them.
         * @enum {string}
         */
        BleEventView: "receptions" | "observations";
        /** @description What was received. */
        BleNumbers: {
            /**
             * Format: double
             * @description The share of them that was decoded, from 0 to 1; 0 without events.
             */
            decodedShare: number;
            /**
             * Format: int64
             * @description The events.
             */
            events: number;
            /**
             * Format: double
             * @description How many there were in a minute.
             */
            eventsPerMinute: number;
            /** @description The events over time, oldest first; the points have the same distance. */
            series: components["schemas"]["Point"][];
        };
        /** @description How an event was processed once. */
        BleProcessingRunResponse: {
            /**
             * Format: int64
             * @description The event.
             */
            bleEventId: number;
            /** @description The identifiers of today's catalog that the event fits, the most specific first. */
            candidates: components["schemas"]["CandidateResponse"][];
            /** @description The attempts to deliver it, oldest first: those of the first 20,000 attempts after it was received, 100 at most. Of several runs, the last one has them. */
            deliveries: components["schemas"]["RunDeliveryResponse"][];
            /**
             * Format: int64
             * @description The registered device.
             */
            deviceInstanceId?: number | null;
            /**
             * Format: int64
             * @description How long it takes to recognise and read the event, measured now.
             */
            durationMicros: number;
            /** @description Why it could not be read. */
            error?: string | null;
            /** @description The model, and the identifier that won. */
            matched?: components["schemas"]["MatchedResponse"] | null;
            /** @description What the event says. */
            measurements: components["schemas"]["MeasurementResponse"][];
            /** @description What read the event. */
            protocol?: components["schemas"]["ProtocolUsedResponse"] | null;
            /** @description What today's `CLOUD` rules make of the event. */
            route?: components["schemas"]["RouteDecisionResponse"] | null;
            /**
             * Format: int64
             * @description The run, unique among those of its event; of the run at ingest, the id of the event.
             */
            runId: number;
            /**
             * Format: date-time
             * @description When it began.
             * @example 2026-01-31T08:00:00.000000Z
             */
            startedAt: string;
            /** @description How far it got. */
            status: components["schemas"]["ProcessingStatus"];
            /** @description What caused it. */
            trigger: components["schemas"]["RunTrigger"];
        };
        /** @description A whole route. It replaces the one before. A member that is not known is an error. */
        BleRouteConfigRequest: {
            /** @description What becomes of what no rule of either layer fits; `FORWARD` when absent. */
            otherwise?: components["schemas"]["Otherwise"] | null;
            /** @description The rules in the order in which they are tried: of each layer, the first that fits decides. */
            rules: components["schemas"]["RouteRule"][];
        };
        /** @description A route. */
        BleRouteConfigResponse: {
            /** @description What becomes of what no rule of either layer fits. */
            otherwise: components["schemas"]["Otherwise"];
            /**
             * Format: int64
             * @description Rises with every change; 0 of a tenant that has set no route.
             */
            revision: number;
            /** @description The rules in the order in which they are tried. */
            rules: components["schemas"]["RouteRule"][];
            /**
             * Format: date-time
             * @description When it was last changed; null of a tenant that has set no route.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt?: string | null;
        };
        /** @description The answer to an upload of BLE events or windows. */
        BleUploadResult: {
            /**
             * Format: int64
             * @description Events, or devices, that were stored, or dropped by the route of the tenant.
             */
            accepted: number;
            /** @description Whether an earlier request had stored this batch. */
            duplicate: boolean;
            /** @description Those that were not, and why. Sending them again does not help. */
            rejected: components["schemas"]["RejectedEvent"][];
        };
        /** @description The bounds of a quantity. */
        Bounds: {
            /**
             * Format: double
             * @description There is a notice while the value is above this.
             */
            above?: number | null;
            /**
             * Format: double
             * @description There is a notice while the value is below this.
             */
            below?: number | null;
            /** @description The quantity, such as `temperature`. */
            quantity: string;
        };
        /** @description A login of a person in a browser. What continues it is in a cookie. */
        BrowserSession: {
            /** @description Sent as `Authorization: Bearer ...`. */
            accessToken: string;
            /**
             * Format: date-time
             * @description When the access token expires.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt: string;
            /**
             * Format: uuid
             * @description The default persona of the account. In a tenant, the persona of that tenant applies.
             */
            personaUuid: string;
            /**
             * Format: uuid
             * @description The account.
             */
            userUuid: string;
        };
        /** @description An app of a bundle. */
        BundleAppRefRequest: {
            /**
             * Format: uuid
             * @description A READY release of the app. When absent, each hub gets the newest one of the channel that it can run.
             */
            appReleaseUuid?: string | null;
            /**
             * Format: uuid
             * @description An app of the tenant.
             */
            appUuid: string;
            /** @description `stable` when absent: versions without a suffix. Of another channel also those whose suffix begins with its name: 1.4.0-beta.2 is in `beta`. Not together with a release. */
            channel?: string | null;
        };
        /** @description An app of a bundle. */
        BundleAppResponse: {
            /**
             * Format: uuid
             * @description The release; null for the newest one of the channel.
             */
            appReleaseUuid?: string | null;
            /**
             * Format: uuid
             * @description The app.
             */
            appUuid: string;
            /** @description The channel, if one was named. */
            channel?: string | null;
            /** @description The name of the app. */
            name: string;
        };
        /**
         * @description What becomes of what an archived bundle has brought to hubs.
         *
         *     - `KEEP`: It stays.
         *     - `REMOVE`: Apps are removed, unless somebody has installed them again since; device models and pipelines are not the hubs' any more.
         * @enum {string}
         */
        BundleAtHubs: "KEEP" | "REMOVE";
        /** @description An app of a published bundle. */
        BundleCatalogApp: {
            /**
             * Format: uuid
             * @description The app.
             */
            appUuid: string;
            /** @description What it is for. */
            description?: string | null;
            /** @description The name of the app. */
            name: string;
        };
        /** @description A published bundle, as people see it. */
        BundleCatalogResponse: {
            /**
             * Format: int64
             * @description How many apps it has.
             */
            appCount: number;
            /** @description The apps. */
            apps: components["schemas"]["BundleCatalogApp"][];
            /**
             * Format: date-time
             * @description When it was archived.
             * @example 2026-01-31T08:00:00.000000Z
             */
            archivedAt?: string | null;
            /** @description Whether it is applied to hubs whose claim code names no bundle. */
            autoApply: boolean;
            /**
             * Format: uuid
             * @description The bundle.
             */
            bundleUuid: string;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description A text for people. */
            description?: string | null;
            /**
             * Format: int64
             * @description How many device models it has.
             */
            deviceCount: number;
            /** @description The device models. */
            devices: components["schemas"]["BundleDeviceResponse"][];
            /** @description Whether the caller has linked an account with the supplier. */
            linked: boolean;
            /** @description A name for people. */
            name: string;
            /**
             * Format: int64
             * @description How many pipelines it has.
             */
            pipelineCount: number;
            /**
             * Format: date-time
             * @description When it was published.
             * @example 2026-01-31T08:00:00.000000Z
             */
            publishedAt?: string | null;
            /** @description Where it is in its life. */
            status: components["schemas"]["BundleStatus"];
            /** @description The name of the supplier. */
            supplierName: string;
            /**
             * Format: uuid
             * @description The supplier.
             */
            supplierUuid: string;
        };
        /** @description A device model of a bundle. */
        BundleDeviceRefRequest: {
            /**
             * Format: uuid
             * @description A device model of the tenant.
             */
            deviceUuid: string;
            /**
             * Format: int64
             * @description How many devices of it belong to a hub; 1 when absent.
             */
            quantity?: number | null;
        };
        /** @description A device model of a bundle, or at a hub. */
        BundleDeviceResponse: {
            /**
             * Format: uuid
             * @description The device model.
             */
            deviceUuid: string;
            /** @description The name of the device model. */
            name: string;
            /**
             * Format: int64
             * @description How many devices of it belong to a hub.
             */
            quantity: number;
        };
        /** @description A bundle. */
        BundleResponse: {
            /**
             * Format: int64
             * @description How many apps it has.
             */
            appCount: number;
            /**
             * Format: date-time
             * @description When it was archived.
             * @example 2026-01-31T08:00:00.000000Z
             */
            archivedAt?: string | null;
            /** @description Whether it is applied to hubs whose claim code names no bundle. */
            autoApply: boolean;
            /**
             * Format: uuid
             * @description The bundle.
             */
            bundleUuid: string;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description A text for people. */
            description?: string | null;
            /**
             * Format: int64
             * @description How many device models it has.
             */
            deviceCount: number;
            /** @description A name for people. */
            name: string;
            /**
             * Format: int64
             * @description How many pipelines it has.
             */
            pipelineCount: number;
            /**
             * Format: date-time
             * @description When it was published.
             * @example 2026-01-31T08:00:00.000000Z
             */
            publishedAt?: string | null;
            /** @description Where it is in its life. */
            status: components["schemas"]["BundleStatus"];
        };
        /**
         * @description Where a bundle is in its life.
         *
         *     - `DRAFT`: It can be changed, and is applied to no hub.
         *     - `PUBLISHED`: It is applied to hubs, and changes no more.
         *     - `ARCHIVED`: It is applied to no further hub.
         * @enum {string}
         */
        BundleStatus: "DRAFT" | "PUBLISHED" | "ARCHIVED";
        /** @description How a quantity is corrected: the value is multiplied by `scale`, then `offset` is added. */
        Calibration: {
            /**
             * Format: double
             * @description In the unit of the quantity; 0 when absent.
             */
            offset?: number | null;
            /**
             * Format: double
             * @description 1 when absent; never 0.
             */
            scale?: number | null;
        };
        /** @description An identifier that an event fits. */
        CandidateResponse: {
            /** @description The name of the model. */
            deviceName: string;
            /**
             * Format: uuid
             * @description The model.
             */
            deviceUuid: string;
            /**
             * Format: int64
             * @description The identifier.
             */
            identifierId: number;
            /**
             * Format: uint32
             * @description How many bits it fixes; the highest wins.
             */
            specificity: number;
        };
        /** @description `POST /v1/hubs/{hubUuid}/certificates`: asks for a client certificate for a key of the hub. */
        CertificateIssueRequest: {
            /** @description A PKCS#10 request in PEM form, at most 16 KiB, for a P-256, P-384, Ed25519 or RSA key (2,048 to 8,192 bits), signed with that key. Its subject is ignored. */
            csr: string;
        };
        /** @description A client certificate that names the hub, whatever the request asked for. */
        CertificateIssueResponse: {
            /** @description The certificate, in PEM form. */
            certificate: string;
            /** @description The certificate that issued it, in PEM form: a hub presents both. */
            chain: string;
            /**
             * Format: date-time
             * @description When it expires.
             * @example 2026-01-31T08:00:00.000000Z
             */
            notAfter: string;
            /**
             * Format: date-time
             * @description When it begins to be valid.
             * @example 2026-01-31T08:00:00.000000Z
             */
            notBefore: string;
            /** @description The serial number in lower-case hex. */
            serialNumber: string;
        };
        /** @description Another password for the caller. */
        ChangePasswordRequest: {
            /** @description The password that is valid now. */
            currentPassword: string;
            /** @description The password to set: 8 to 200 characters. */
            newPassword: string;
        };
        /**
         * @description How a notice reaches people.
         *
         *     - `IN_APP`: The members of the tenant see it in their notifications.
         *     - `EMAIL`: By mail.
         *     - `WEBHOOK`: By a signed message to a URL.
         * @enum {string}
         */
        Channel: "IN_APP" | "EMAIL" | "WEBHOOK";
        /** @description Where charge settings are kept: `status` and `message`. */
        ChargeSettings: {
            [key: string]: string;
        };
        /** @description A claim code to create. */
        ClaimCodeGenerateRequest: {
            /** @description Whether hardware whose credentials are in force may be claimed again with it, without the hub's own proof. True requires OPERATE. When absent, it is true for a code for one hub that somebody with OPERATE creates, else false. */
            allowReclaim?: boolean | null;
            /**
             * Format: uuid
             * @description The bundle that is applied to hubs at their claim; when absent, those of the tenant that are marked `autoApply`. A draft has to be published before a hub claims with the code.
             */
            bundleUuid?: string | null;
            /**
             * Format: date-time
             * @description When the code expires, at most ten years ahead. This or `validForSeconds`, not both; 7 days from now when neither is given.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt?: string | null;
            /** @description The label that hubs get, in place of their own. */
            hubIdentifier?: string | null;
            /**
             * Format: int64
             * @description How many hubs may claim with it; 1 when absent.
             */
            maxUses?: number | null;
            /** @description A note for people. */
            note?: string | null;
            /**
             * Format: uuid
             * @description The app user that the hubs will belong to.
             */
            ownerUserUuid?: string | null;
            /**
             * Format: int64
             * @description For how long the code is valid, at most ten years.
             */
            validForSeconds?: number | null;
        };
        /** @description A claim code. */
        ClaimCodeResponse: {
            /** @description Whether hardware whose credentials are in force may be claimed again with it, without the hub's own proof. */
            allowReclaim: boolean;
            /**
             * Format: uuid
             * @description The bundle that is applied to hubs at their claim.
             */
            bundleUuid?: string | null;
            /** @description The code; only its first group, as in `7K3M-…`, to callers who may not create codes. */
            claimCode: string;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When it expires.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt: string;
            /** @description The label that hubs get. */
            hubIdentifier?: string | null;
            /**
             * Format: uuid
             * @description Names the code in a path. Nothing can be claimed with it.
             */
            id: string;
            /**
             * Format: int64
             * @description How many hubs may claim with it.
             */
            maxUses: number;
            /** @description A note for people. */
            note?: string | null;
            /**
             * Format: uuid
             * @description The app user that the hubs will belong to.
             */
            ownerUserUuid?: string | null;
            /** @description Where the person that it is made out to follows the hub; for a QR code. Null where the code is masked or made out to nobody, and while the service does not know its public URL. */
            pairingUrl?: string | null;
            /** @description Whether it can be used. */
            status: components["schemas"]["ClaimCodeStatus"];
            /**
             * Format: int64
             * @description How many hubs have claimed with it.
             */
            useCount: number;
        };
        /**
         * @description The status of a claim code: the first that applies.
         *
         *     - `REVOKED`: It was revoked.
         *     - `USED`: It was used as often as allowed.
         *     - `EXPIRED`: It has expired.
         *     - `PENDING`: It can be used.
         * @enum {string}
         */
        ClaimCodeStatus: "REVOKED" | "USED" | "EXPIRED" | "PENDING";
        /**
         * @description Where a command is. The last three are final.
         *
         *     - `QUEUED`: It waits for its hub.
         *     - `SENT`: Its hub or the supplier's endpoint has it.
         *     - `SUCCEEDED`: It was carried out.
         *     - `FAILED`: It was not carried out, only in part, or nobody knows: `error` says which.
         *     - `EXPIRED`: Its hub reported nothing about it in time.
         * @enum {string}
         */
        CommandStatus: "QUEUED" | "SENT" | "SUCCEEDED" | "FAILED" | "EXPIRED";
        /**
         * @description How an event differs.
         *
         *     - `CHANGED`: Both make something of it, and not the same.
         *     - `ONLY_BEFORE`: Only the revision in force makes something of it.
         *     - `ONLY_AFTER`: Only the draft makes something of it.
         *     - `ERROR`: A step of either fails.
         * @enum {string}
         */
        CompareDifference: "CHANGED" | "ONLY_BEFORE" | "ONLY_AFTER" | "ERROR";
        /** @description An event that differs. */
        CompareExample: {
            /** @description What the draft makes of it. */
            after: components["schemas"]["CompareSide"];
            /** @description What the revision in force makes of it. */
            before: components["schemas"]["CompareSide"];
            /**
             * Format: int64
             * @description The event.
             */
            bleEventId: number;
            /** @description How it differs. */
            difference: components["schemas"]["CompareDifference"];
        };
        /** @description A draft, and the stored events to try it on. */
        CompareRequest: {
            /** @description The pipeline as it would be saved. */
            draft: components["schemas"]["CreatePipelineRequest"];
            /**
             * Format: date-time
             * @description Events received at this time or later.
             * @example 2026-01-31T08:00:00.000000Z
             */
            from: string;
            /**
             * Format: int64
             * @description So many events at most; 10,000 when absent.
             */
            limit?: number | null;
            /**
             * Format: date-time
             * @description Events received before this time, which is after `from`.
             * @example 2026-01-31T08:00:00.000000Z
             */
            to: string;
        };
        /** @description How a draft differs from what runs. */
        CompareResponse: {
            /**
             * Format: int64
             * @description Events of which both make something, and not the same.
             */
            changed: number;
            /** @description Whether all events of the range were tried. A comparison takes 5 seconds at most. */
            complete: boolean;
            /**
             * Format: int64
             * @description Events on which a step of either fails.
             */
            errors: number;
            /**
             * Format: int64
             * @description Events that were tried. Each is in one of the five counts that follow.
             */
            events: number;
            /** @description The first events that differ. */
            examples: components["schemas"]["CompareExample"][];
            /**
             * Format: int64
             * @description Events of which only the draft makes something.
             */
            onlyAfter: number;
            /**
             * Format: int64
             * @description Events of which only the revision in force makes something.
             */
            onlyBefore: number;
            /**
             * Format: date-time
             * @description Events received before this time were tried. Where `complete` is false, another comparison with it as `from` goes on.
             * @example 2026-01-31T08:00:00.000000Z
             */
            readTo: string;
            /**
             * Format: int64
             * @description Events of which both make the same, or nothing.
             */
            same: number;
        };
        /** @description What a revision makes of an event; nothing if it is empty. */
        CompareSide: {
            /** @description Which step fails, and why. */
            error?: string | null;
            /** @description The event after the steps, or the text of a template; a list if a script made several. */
            output?: unknown;
        };
        /** @description What a person grants. */
        ConsentGrantRequest: {
            /**
             * Format: uuid
             * @description The hub of the person for which it is; for all of their hubs of this supplier when absent.
             */
            hubUuid?: string | null;
            /** @description The keys of the purposes that the person grants; all that are required among them. */
            purposes: string[];
            /**
             * Format: uuid
             * @description The supplier.
             */
            supplierUuid: string;
            /** @description The version that the person has read, which has to be the one in force. */
            version: string;
        };
        /** @description What a person has granted. */
        ConsentRecordResponse: {
            /**
             * Format: int64
             * @description The id of the consent.
             */
            consentId: number;
            /**
             * Format: int64
             * @description How many BLE events were deleted because of the person's retention.
             */
            deletedEvents: number;
            /**
             * Format: date-time
             * @description When it was granted.
             * @example 2026-01-31T08:00:00.000000Z
             */
            grantedAt: string;
            /**
             * Format: uuid
             * @description The hub for which it is; null for all of the person's hubs of this supplier.
             */
            hubUuid?: string | null;
            /** @description The keys of the purposes. */
            purposes: string[];
            /** @description A JWS of all of it as it was granted, signed with a key of `/.well-known/jwks.json`. */
            receipt: string;
            /** @description Whether it is in force. */
            status: components["schemas"]["ConsentStatus"];
            /**
             * Format: uuid
             * @description The supplier.
             */
            supplierUuid: string;
            /**
             * Format: uuid
             * @description The person.
             */
            userUuid: string;
            /** @description The version. */
            version: string;
            /**
             * Format: date-time
             * @description When it was withdrawn.
             * @example 2026-01-31T08:00:00.000000Z
             */
            withdrawnAt?: string | null;
        };
        /** @description What users are to be asked for. A version that somebody has granted keeps its text, its URL and its purposes. */
        ConsentSettingRequest: {
            /** @description Whether hubs of users who have not granted the required purposes report no BLE events. */
            enforce: boolean;
            /** @description What data is used for. */
            purposes: components["schemas"]["Purpose"][];
            /** @description Whether users may claim hubs by themselves; false when absent. */
            selfPairing?: boolean | null;
            /** @description What people read, of 64 KiB at most. */
            text: string;
            /** @description Where more is to be read: a URL with `https` or `http`. */
            url?: string | null;
            /** @description The name of the version. It is in force from now on; consents to others are outdated. */
            version: string;
        };
        /** @description What users are asked for. */
        ConsentSettingResponse: {
            /**
             * Format: date-time
             * @description When the version was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description Whether hubs of users who have not granted the required purposes report no BLE events. */
            enforce: boolean;
            /** @description What data is used for. */
            purposes: components["schemas"]["Purpose"][];
            /** @description Whether users may claim hubs by themselves. */
            selfPairing: boolean;
            /**
             * Format: uuid
             * @description The supplier.
             */
            supplierUuid: string;
            /** @description What people read. */
            text: string;
            /**
             * Format: date-time
             * @description When it was last changed or put in force.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
            /** @description Where more is to be read. */
            url?: string | null;
            /** @description The name of the version. */
            version: string;
        };
        /**
         * @description What has become of a consent.
         *
         *     - `GRANTED`: It is in force.
         *     - `WITHDRAWN`: The person has withdrawn it.
         *     - `OUTDATED`: The supplier asks for another version, or the person has granted something else since. It is not in force.
         * @enum {string}
         */
        ConsentStatus: "GRANTED" | "WITHDRAWN" | "OUTDATED";
        /**
         * @description What is wrong with an event's counter.
         *
         *     - `REPLAYED`: The authenticated counter is lower than an earlier one: the event may be a recording.
         * @enum {string}
         */
        CounterStatus: "REPLAYED";
        /** @description A signed release of the platform. */
        CreateAgentReleaseRequest: {
            /** @description Whether it is offered as soon as its file is stored; true when absent. */
            active?: boolean | null;
            /** @description HUB_AGENT when absent; the manifest is named `hub-agent` in that case alone. */
            category?: components["schemas"]["ReleaseCategory"] | null;
            /** @description The release channel, such as `stable` or `beta`. */
            channel: string;
            /** @description The text of the manifest that was signed, byte for byte: FILE.manifest.json of `hub-cloud release sign`. Its kind is AGENT. */
            manifest: string;
            /** @description The text of its minisign signature, by one of the keys that the service trusts: FILE.manifest.json.minisig. */
            signature: string;
        };
        /** @description An update policy. It replaces the policy of the same scope and target. */
        CreateAgentUpdatePolicyRequest: {
            /** @description Whether hubs are updated; true when absent. */
            autoUpdate?: boolean | null;
            /** @description The release channel to follow; `stable` when absent. */
            channel?: string | null;
            /**
             * Format: uuid
             * @description The hub, of HUB.
             */
            hubUuid?: string | null;
            /** @description How gradually a release is rolled out; to all hubs at once when absent. */
            rollout?: components["schemas"]["RolloutRequest"] | null;
            /** @description Which hubs it applies to. */
            scope: components["schemas"]["PolicyScope"];
            /**
             * Format: uuid
             * @description The tenant, of UNIT; the caller's own when absent. With HUB it may be given, and must be that of the hub.
             */
            tenantUuid?: string | null;
            /** @description Hubs stay at this version, whatever is newer. */
            version?: string | null;
            /** @description When in the day, in the time zone of each hub, an update may be applied. */
            window?: components["schemas"]["MaintenanceWindow"] | null;
        };
        /** @description A bundle to create. It has no parts yet. */
        CreateBundleRequest: {
            /** @description Whether it is applied to hubs whose claim code names no bundle; false when absent. */
            autoApply?: boolean | null;
            /** @description A text for people. */
            description?: string | null;
            /** @description A name for people. */
            name: string;
        };
        /** @description A device to register. Without a beacon, an identity resolving key or an address, nothing that is received is ever taken for it. */
        CreateDeviceInstanceRequest: {
            /** @description The address that the device advertises with, such as `C4:11:7D:DA:71:13`; of a device whose address changes, none. */
            address?: string | null;
            /** @description The kind of the address. */
            addressType?: components["schemas"]["AddressType"] | null;
            /** @description What the device sends as a beacon. */
            beacon?: components["schemas"]["Beacon"] | null;
            /** @description The key that its advertisements are encrypted with: 16 bytes, or 12 of older MiBeacon devices, as hex digits. It is never answered. */
            bindKey?: string | null;
            /** @description Corrections by quantity. */
            calibration?: {
                [key: string]: components["schemas"]["Calibration"];
            } | null;
            /**
             * Format: uuid
             * @description The model of the device.
             */
            deviceUuid: string;
            /**
             * Format: uuid
             * @description The version of the model that the device is.
             */
            deviceVersionUuid?: string | null;
            /** @description The key that its changing addresses are made from: 16 bytes as hex digits. It is never answered. */
            identityResolvingKey?: string | null;
            /** @description Names and values for people and programs: at most 64, with names of 1 to 64 characters and values of at most 256, and 8 KiB in all. */
            labels?: {
                [key: string]: string;
            } | null;
            /** @description A name for people. */
            name?: string | null;
            /** @description The serial number, as its maker writes it. */
            serialNumber?: string | null;
        };
        /** @description A manual to create. */
        CreateDeviceManualRequest: {
            /** @description Its text in Markdown, of 64 KiB at most. */
            content?: string | null;
            /**
             * Format: uuid
             * @description The model.
             */
            deviceUuid: string;
            /** @description Where its text is: MARKDOWN needs `content`, LINK needs `url`, and neither takes the other. */
            format: components["schemas"]["ManualFormat"];
            /** @description The language of it, such as `pt-BR`. */
            locale?: string | null;
            /** @description What it is called. */
            title: string;
            /** @description Where its text is: a URL with `https` or `http`. */
            url?: string | null;
        };
        /** @description An identifier to create: several `conditions`, or the members of a single one. */
        CreateDeviceMatchIdentifierRequest: {
            /** @description Up to 8 conditions, all of which must hold. */
            conditions?: components["schemas"]["DeviceCondition"][] | null;
            /** @description Of a single condition: what it is about. */
            kind?: components["schemas"]["DeviceConditionKind"] | null;
            /** @description A label for people. */
            label?: string | null;
            /** @description Of a single condition: the bits that count, as many bytes in hexadecimal. */
            mask?: string | null;
            /** @description A text for people. */
            notes?: string | null;
            /** @description Of a single condition: what it must be, in the form of the kind. */
            value?: string | null;
        };
        /** @description A protocol to create. It is compiled, and its tests are run, before it is stored. */
        CreateDeviceProtocolRequest: {
            /** @description What the kind demands, of 64 KiB at most. A member that is not known is an error. */
            definition: unknown;
            /**
             * Format: uuid
             * @description The model.
             */
            deviceUuid: string;
            /** @description How it is given. */
            kind: components["schemas"]["DeviceProtocolKind"];
            /** @description A name for people. */
            name: string;
            /** @description Advertisements with what they say, in the form of docs/decoders.md, of 64 KiB at most. They are shown to every reader of the catalog: give no key of a device in use. */
            tests?: {
                [key: string]: unknown;
            }[] | null;
        };
        /** @description A device model to create. What is absent comes from the template, if there is one. */
        CreateDeviceRequest: {
            /** @description Other names of it. */
            aliases?: string[] | null;
            /** @description Whether a device is registered when it is recognised for the first time. */
            autoRegister?: boolean | null;
            /** @description Who sells it. */
            brand?: string | null;
            /** @description What kind of device it is, such as `climate`. */
            category?: string | null;
            /** @description A text for people. */
            description?: string | null;
            /**
             * Format: int64
             * @description How often a device sends, in seconds; 0 if it is not known.
             */
            expectedIntervalSeconds?: number | null;
            /** @description The address of an advertiser of `GET /tenant/ble/unknown`. Without a template, the model gets its name and an identifier that fits what it advertised. */
            fromUnknown?: string | null;
            /** @description A picture of it: a URL with `https` or `http`. */
            imageUrl?: string | null;
            /** @description What it measures. */
            metrics?: components["schemas"]["DeviceMetricRequest"][] | null;
            /** @description What the maker calls it. */
            model?: string | null;
            /** @description A name for people; required without a template and without an unknown advertiser. */
            name?: string | null;
            /**
             * Format: int64
             * @description The power received at a distance of one metre, from -127 to 20; 127 if it is not known.
             */
            referencePowerDbm?: number | null;
            /** @description A model of the library, such as `ruuvi/ruuvitag`, whose identifiers, protocol and metrics the new model gets. They can be changed afterwards. */
            template?: string | null;
        };
        /** @description A form to create. */
        CreateDeviceUiRequest: {
            /** @description Its steps. */
            configJson: components["schemas"]["DeviceUiConfig"];
            /**
             * Format: uuid
             * @description The model.
             */
            deviceUuid: string;
            /** @description What it is for. */
            kind: components["schemas"]["DeviceUiKind"];
            /** @description The language of it, such as `pt-BR`. */
            locale?: string | null;
            /** @description A name for people. */
            name: string;
        };
        /** @description A version to create. */
        CreateDeviceVersionRequest: {
            /**
             * Format: int64
             * @description The protocol of the same model that reads it; the newest of the model when absent.
             */
            deviceProtocolId?: number | null;
            /**
             * Format: uuid
             * @description The model.
             */
            deviceUuid: string;
            /** @description The firmware of it. */
            firmwareVersion?: string | null;
            /** @description The hardware of it. */
            hardwareVersion?: string | null;
            /** @description A text for people. */
            notes?: string | null;
            /** @description Whether it is on sale; false when absent. */
            released?: boolean | null;
            /** @description Its name, unique within the model. */
            version: string;
        };
        /** @description The release that a hub should update its agent to, regardless of its update policy. */
        CreateForcedUpdateJobRequest: {
            /**
             * Format: date-time
             * @description When the job expires if it has not finished, at most a year ahead. This or `validForSeconds`, not both; 7 days from now when neither is given.
             * @example 2026-01-31T08:00:00.000000Z
             */
            deadlineAt?: string | null;
            /** @description Whether to try a release that failed on this hub before. */
            force?: boolean | null;
            /**
             * Format: uuid
             * @description A READY release of the agent that the hub can run.
             */
            releaseUuid: string;
            /**
             * Format: int64
             * @description For how long the job may run before it expires, at most a year.
             */
            validForSeconds?: number | null;
        };
        /** @description A pipeline to create. A member that is not known is an error. */
        CreatePipelineRequest: {
            /** @description How it is sent. */
            delivery?: components["schemas"]["DeliveryRequest"] | null;
            /** @description A text for people. */
            description?: string | null;
            /** @description Where what is left goes. `kind` is HTTP, MQTT, NATS or S3; each has members of its own. */
            destination: {
                [key: string]: unknown;
            };
            /** @description Whether it runs; true when absent. */
            enabled?: boolean | null;
            /** @description A name for people. */
            name: string;
            /** @description Which events it takes. */
            source: components["schemas"]["SourceRequest"];
            /** @description What is done with each event, in order. */
            steps?: {
                [key: string]: unknown;
            }[] | null;
        };
        /** @description A tenant to create. */
        CreateTenantRequest: {
            /** @description Its name. */
            name: string;
        };
        /**
         * @description What a request was recognised by.
         *
         *     - `USER_TOKEN`: The access token of a user.
         *     - `API_KEY`: An API key.
         * @enum {string}
         */
        Credential: "USER_TOKEN" | "API_KEY";
        /** @description The summary of a tenant. */
        DashboardSummary: {
            /** @description The BLE events of the window. */
            ble: components["schemas"]["BleNumbers"];
            /**
             * Format: int64
             * @description Messages that could not be delivered and wait for somebody.
             */
            deadLetters: number;
            /** @description The devices that are not retired. */
            devices: components["schemas"]["DeviceNumbers"];
            /**
             * Format: date-time
             * @description When the numbers were read.
             * @example 2026-01-31T08:00:00.000000Z
             */
            generatedAt: string;
            /** @description The hubs. */
            hubs: components["schemas"]["HubNumbers"];
            /** @description The jobs of hubs. */
            jobs: components["schemas"]["JobNumbers"];
            /** @description The pipelines. */
            pipelines: components["schemas"]["PipelineNumbers"];
            /** @description The deliveries of the window. */
            webhooks: components["schemas"]["WebhookNumbers"];
            /**
             * Format: int64
             * @description The minutes that are looked back.
             */
            windowMinutes: number;
        };
        /** @description What was deleted. */
        DeletedExternalEndpoint: {
            /** @description The id of the endpoint. */
            id: string;
            /** @description `deleted`. */
            status: string;
        };
        /**
         * @description What came of an attempt to deliver.
         *
         *     - `PENDING`: It is under way. Attempts are recorded when they have ended, so none is.
         *     - `DELIVERED`: The receiver took the message.
         *     - `FAILED`: It failed; another attempt follows.
         *     - `DEAD`: It failed, and the message is a dead letter.
         * @enum {string}
         */
        DeliveryOutcome: "PENDING" | "DELIVERED" | "FAILED" | "DEAD";
        /** @description How messages are sent. */
        DeliveryRequest: {
            /**
             * Format: int64
             * @description Events of one message at most; 1 when absent, with another default for S3.
             */
            batchEvents?: number | null;
            /**
             * Format: int64
             * @description How long an event waits for others; 1,000 when absent.
             */
            batchMillis?: number | null;
            /**
             * Format: int64
             * @description Messages under way at once; 1 when absent.
             */
            concurrency?: number | null;
            /** @description Whether a message waits for the one before it; true when absent, unless `concurrency` is above 1. */
            ordered?: boolean | null;
            /**
             * Format: int64
             * @description How long a receiver may take to answer; 15 when absent.
             */
            timeoutSeconds?: number | null;
        };
        /**
         * @description Whether an event has reached its destinations.
         *
         *     - `NONE`: No pipeline takes it.
         *     - `PENDING`: It is on its way.
         *     - `DELIVERED`: All pipelines that take it are done with it.
         *     - `FAILED`: It waits for a receiver that fails.
         *     - `DEAD`: It is in a dead letter.
         * @enum {string}
         */
        DeliveryStatus: "NONE" | "PENDING" | "DELIVERED" | "FAILED" | "DEAD";
        /** @description What the update policy that applies to this hub says. */
        DesiredAgent: {
            /** @description The release channel that the hub follows, such as `stable`. */
            channel?: string | null;
            /** @description The version that the hub stays at. */
            version?: string | null;
            /** @description When in the day an update may be applied. */
            window?: components["schemas"]["MaintenanceWindow"] | null;
        };
        /** @description An app that should be installed. */
        DesiredApp: {
            /**
             * Format: uuid
             * @description The app.
             */
            appUuid: string;
            /**
             * Format: uuid
             * @description The release of it.
             */
            releaseUuid: string;
            /** @description The version of that release. */
            version: string;
        };
        /** @description A job that is not finished, as the desired state lists it. */
        DesiredJob: {
            /**
             * Format: uuid
             * @description The app to install or remove.
             */
            appUuid?: string | null;
            /** @description What to do with a device. A command that was begun is never begun again. */
            command?: components["schemas"]["DeviceCommand"] | null;
            /**
             * Format: date-time
             * @description When the job expires, whether the hub has started it or not.
             * @example 2026-01-31T08:00:00.000000Z
             */
            deadlineAt: string;
            /**
             * @description Whether to try a release that failed on this hub before.
             * @default false
             */
            force: boolean;
            /**
             * Format: uuid
             * @description The job.
             */
            hubJobUuid: string;
            /**
             * Format: uuid
             * @description The release to install: `GET /v1/apps/{releaseUuid}/manifest`, or for a self-update `GET /v1/agent/releases/latest?releaseUuid=`.
             */
            releaseUuid?: string | null;
            /** @description What it does. */
            type: components["schemas"]["HubJobType"];
            /** @description When in the day, in the time zone of the hub, the change may be applied; at any time when absent. Downloads need not wait for it. */
            window?: components["schemas"]["MaintenanceWindow"] | null;
        };
        /** @description `GET /v1/hubs/{hubUuid}/desired-state`: all that is desired of the hub. */
        DesiredState: {
            /** @description Which release of the agent the hub should run, as far as a policy says so. */
            agent: components["schemas"]["DesiredAgent"];
            /** @description The apps that should be installed once all jobs are finished. */
            apps: components["schemas"]["DesiredApp"][];
            /** @description The jobs that are not finished, oldest first. A hub runs one at a time. */
            jobs: components["schemas"]["DesiredJob"][];
            /**
             * Format: int64
             * @description Grows with every change.
             */
            revision: number;
            /**
             * Format: int64
             * @description Fetch `GET /v1/hubs/scan-config` again when this differs from the revision last seen.
             */
            scanConfigRevision: number;
            /** @description What operators set for this hub. */
            settings: components["schemas"]["HubSettings"];
        };
        /** @description A project of a persona. */
        DevPersonaProject: {
            /** @description Its name. */
            name: string;
            /** @description The project, as the partner names it. */
            projectId: string;
            /** @description The role of the persona, as the partner says. */
            role: string;
        };
        /** @description What a member of a project may do. */
        DevProjectAuthz: {
            /** @description Whether it may change what takes part in the project. */
            mayChange: boolean;
            /** @description Whether it sees the project. */
            mayRead: boolean;
            /**
             * Format: uuid
             * @description The persona.
             */
            personaUuid: string;
            /** @description Its role, as the partner says. */
            role: string;
            /**
             * Format: uuid
             * @description The user behind it; null if the service knows no such persona, or it is in force no more.
             */
            userUuid?: string | null;
        };
        /** @description A member of a project. */
        DevProjectMember: {
            /**
             * Format: uuid
             * @description The persona.
             */
            personaUuid: string;
            /** @description Its role, as the partner says. */
            role: string;
        };
        /** @description A project as it is stored. */
        DevProjectResponse: {
            /**
             * Format: date-time
             * @description When the partner first told of it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When the partner deleted it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            deletedAt?: string | null;
            /** @description Its members. */
            members: components["schemas"]["DevProjectMember"][];
            /** @description Its name. */
            name: string;
            /**
             * Format: date-time
             * @description The time of the last message, if it had one.
             * @example 2026-01-31T08:00:00.000000Z
             */
            occurredAt?: string | null;
            /** @description The project, as the partner names it. */
            projectId: string;
            /** @description The tenants that take part. */
            tenants: components["schemas"]["ProjectTenantResponse"][];
            /**
             * Format: date-time
             * @description When something about it last changed by a message.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
        };
        /** @description A device model. */
        DeviceCatalogResponse: {
            /** @description Other names of it. */
            aliases: string[];
            /** @description Whether a device is registered when it is recognised for the first time. */
            autoRegister: boolean;
            /** @description Who sells it. */
            brand?: string | null;
            /** @description What kind of device it is. */
            category?: string | null;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description A text for people. */
            description?: string | null;
            /**
             * Format: uuid
             * @description The model.
             */
            deviceUuid: string;
            /**
             * Format: int64
             * @description How often a device sends.
             */
            expectedIntervalSeconds?: number | null;
            /**
             * Format: int64
             * @description How many identifiers it has.
             */
            identifierCount: number;
            /** @description A picture of it. */
            imageUrl?: string | null;
            /**
             * Format: int64
             * @description How many devices of it there are.
             */
            instanceCount: number;
            /** @description What it measures. */
            metrics: components["schemas"]["DeviceMetric"][];
            /** @description What the maker calls it. */
            model?: string | null;
            /** @description Its name. */
            name: string;
            /**
             * Format: int64
             * @description The power received at a distance of one metre.
             */
            referencePowerDbm?: number | null;
            /** @description The model of the library that it was made from, such as `ruuvi/ruuvitag`. */
            template?: string | null;
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
        };
        /** @description What a hub does with a device, once: it connects, takes the steps in their order, and disconnects. */
        DeviceCommand: {
            /** @description Its address, in upper case. */
            address: string;
            /**
             * Format: int64
             * @description The device.
             */
            deviceInstanceId: number;
            /** @description The steps. */
            steps: components["schemas"]["DeviceCommandStep"][];
        };
        /** @description Why a command was not carried out. */
        DeviceCommandError: {
            /** @description A stable word, such as `DEVICE_NOT_FOUND` or `OUTCOME_UNKNOWN`. */
            code: string;
            /** @description A sentence for people. */
            message: string;
        };
        /** @description What a device shall do. */
        DeviceCommandRequest: {
            /** @description The action. */
            actionId: string;
            /** @description Chosen by the client: a command with the same key is given to the device once. */
            idempotencyKey?: string | null;
            /** @description What the action takes, as its schema says: 16 KiB at most. */
            parameters?: {
                [key: string]: unknown;
            } | null;
        };
        /** @description A command that a device was given. */
        DeviceCommandResponse: {
            /** @description What the device was to do. */
            actionId: string;
            /**
             * Format: uuid
             * @description The command.
             */
            commandUuid: string;
            /**
             * Format: date-time
             * @description When it ended.
             * @example 2026-01-31T08:00:00.000000Z
             */
            completedAt?: string | null;
            /**
             * Format: date-time
             * @description When it was given.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description The device.
             */
            deviceInstanceId: number;
            /** @description Why it was not carried out. */
            error?: components["schemas"]["DeviceCommandError"] | null;
            /**
             * Format: uuid
             * @description The hub that carries it out; null where an external endpoint does.
             */
            hubUuid?: string | null;
            /** @description What came of it. Over GATT: `{"steps": [{"characteristic", "operation", "value"?}]}` with values in hexadecimal, also of the steps before one that failed. Of an endpoint: `{"status", "body"}`. */
            result?: {
                [key: string]: unknown;
            } | null;
            /** @description Where it is. */
            status: components["schemas"]["CommandStatus"];
        };
        /** @description One operation on a characteristic, as a hub carries it out. */
        DeviceCommandStep: {
            /**
             * Format: uuid
             * @description The characteristic.
             */
            characteristic: string;
            /** @description What is done. */
            operation: components["schemas"]["GattOperation"];
            /**
             * Format: uuid
             * @description The service.
             */
            service: string;
            /**
             * Format: int64
             * @description How long the step may take; the hub decides when absent.
             */
            timeoutMillis?: number | null;
            /** @description What is written, in hexadecimal; of the two operations that write. */
            value?: string | null;
        };
        /** @description Something that must hold of an advertisement. */
        DeviceCondition: {
            /** @description What it is about. */
            kind: components["schemas"]["DeviceConditionKind"];
            /** @description Of a prefix of bytes: the bits of it that count, as many bytes in hexadecimal. */
            mask?: string | null;
            /** @description What it must be, in the form of the kind. */
            value: string;
        };
        /**
         * @description What a condition is about.
         *
         *     - `MANUFACTURER_ID`: The company identifier of manufacturer data, such as `0499`.
         *     - `MANUFACTURER_PREFIX`: Manufacturer data that begins so, such as `0499:05`.
         *     - `SERVICE_UUID`: An advertised service, such as `180f`, or its UUID in full.
         *     - `SERVICE_DATA_UUID`: A service with data, such as `fcd2`, or its UUID in full.
         *     - `SERVICE_DATA_PREFIX`: Service data that begins so, such as `fcd2:40`.
         *     - `NAME`: The whole name.
         *     - `NAME_PREFIX`: The beginning of the name.
         *     - `ADDRESS_PREFIX`: The beginning of the address, such as `C4:11`.
         *     - `IBEACON`: An iBeacon, as `uuid`, `uuid/major` or `uuid/major/minor`.
         *     - `EDDYSTONE_UID`: An Eddystone-UID frame, as `namespace` or `namespace/instance` in hexadecimal.
         *     - `PAYLOAD_LENGTH`: The length of manufacturer or service data in bytes, such as `0499:24`.
         * @enum {string}
         */
        DeviceConditionKind: "MANUFACTURER_ID" | "MANUFACTURER_PREFIX" | "SERVICE_UUID" | "SERVICE_DATA_UUID" | "SERVICE_DATA_PREFIX" | "NAME" | "NAME_PREFIX" | "ADDRESS_PREFIX" | "IBEACON" | "EDDYSTONE_UID" | "PAYLOAD_LENGTH";
        /** @description A device with what can be seen of it and done with it: of each kind the newest 20. */
        DeviceDetailResponse: {
            /** @description What can be done with it. */
            actions: components["schemas"]["ActionDefinitionResponse"][];
            /**
             * Format: date-time
             * @description When it first became active.
             * @example 2026-01-31T08:00:00.000000Z
             */
            activatedAt?: string | null;
            /** @description Where the device is in its life. */
            activationStatus: components["schemas"]["ActivationStatus"];
            /** @description The address that it advertises with, in upper case. */
            address?: string | null;
            /** @description The kind of the address. */
            addressType?: components["schemas"]["AddressType"] | null;
            /** @description What it sends as a beacon. */
            beacon?: components["schemas"]["Beacon"] | null;
            /**
             * Format: date-time
             * @description When it was registered.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description The id of the device.
             */
            deviceInstanceId: number;
            /** @description The name of the model. */
            deviceName: string;
            /**
             * Format: uuid
             * @description The model of the device.
             */
            deviceUuid: string;
            /**
             * Format: uuid
             * @description The version of the model that the device is.
             */
            deviceVersionUuid?: string | null;
            /**
             * Format: uuid
             * @description The hub of the caller that hears it best.
             */
            hubUuid: string;
            /**
             * Format: int64
             * @description How strongly it was last heard, in dBm.
             */
            lastRssiDbm?: number | null;
            /**
             * Format: date-time
             * @description When it was last heard.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastSeenAt?: string | null;
            /** @description The manuals of its model. */
            manuals: components["schemas"]["DeviceManualResponse"][];
            /** @description A name for people. */
            name?: string | null;
            /** @description The hub that hears it best. */
            nearestHub?: components["schemas"]["NearestHub"] | null;
            /** @description Whether it was heard within three of its intervals, of 10 minutes at least. */
            online: boolean;
            /**
             * Format: date-time
             * @description When it was retired.
             * @example 2026-01-31T08:00:00.000000Z
             */
            retiredAt?: string | null;
            /** @description The serial number. */
            serialNumber?: string | null;
            /** @description The last value of each quantity, since the hub is the caller's. */
            state: {
                [key: string]: components["schemas"]["LastValue"];
            };
            /** @description The forms of its model. */
            ui: components["schemas"]["DeviceUiResponse"][];
        };
        /** @description A device. Its keys are never answered. */
        DeviceInstanceResponse: {
            /**
             * Format: date-time
             * @description When it first became active.
             * @example 2026-01-31T08:00:00.000000Z
             */
            activatedAt?: string | null;
            /** @description Where the device is in its life. */
            activationStatus: components["schemas"]["ActivationStatus"];
            /** @description The address that it advertises with, in upper case. */
            address?: string | null;
            /** @description The kind of the address. */
            addressType?: components["schemas"]["AddressType"] | null;
            /** @description What it sends as a beacon. */
            beacon?: components["schemas"]["Beacon"] | null;
            /** @description What is known of its key for advertisements. */
            bindKeyStatus: components["schemas"]["BindKeyStatus"];
            /** @description Corrections by quantity. */
            calibration: {
                [key: string]: components["schemas"]["Calibration"];
            };
            /**
             * Format: date-time
             * @description When it was registered.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description The id of the device.
             */
            deviceInstanceId: number;
            /** @description The name of the model. */
            deviceName: string;
            /**
             * Format: uuid
             * @description The model of the device.
             */
            deviceUuid: string;
            /**
             * Format: uuid
             * @description The version of the model that the device is.
             */
            deviceVersionUuid?: string | null;
            /** @description Whether there is a key that its changing addresses are made from. */
            identityResolvingKeySet: boolean;
            /** @description Names and values for people and programs. */
            labels: {
                [key: string]: string;
            };
            /**
             * Format: int64
             * @description How strongly it was last heard, in dBm.
             */
            lastRssiDbm?: number | null;
            /**
             * Format: date-time
             * @description When it was last heard.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastSeenAt?: string | null;
            /** @description A name for people. */
            name?: string | null;
            /** @description The hub that hears it best; null when it was not heard. */
            nearestHub?: components["schemas"]["NearestHub"] | null;
            /** @description Whether it was heard within three of its intervals, of 10 minutes at least. */
            online: boolean;
            /**
             * Format: date-time
             * @description When it was retired.
             * @example 2026-01-31T08:00:00.000000Z
             */
            retiredAt?: string | null;
            /** @description The serial number. */
            serialNumber?: string | null;
            /** @description The last value of each quantity. */
            state: {
                [key: string]: components["schemas"]["LastValue"];
            };
        };
        /** @description A manual of a device model. */
        DeviceManualResponse: {
            /** @description Its text in Markdown; null for a LINK. */
            content?: string | null;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description The id of the manual.
             */
            deviceManualId: number;
            /**
             * Format: uuid
             * @description The model.
             */
            deviceUuid: string;
            /** @description Where its text is. */
            format: components["schemas"]["ManualFormat"];
            /** @description The language of it, such as `pt-BR`. */
            locale?: string | null;
            /** @description What it is called. */
            title: string;
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
            /** @description Where its text is; null for MARKDOWN. */
            url?: string | null;
        };
        /** @description What an advertisement of a device model looks like. Identifiers of one model are alternatives. */
        DeviceMatchIdentifierResponse: {
            /** @description All of them must hold. */
            conditions: components["schemas"]["DeviceCondition"][];
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: uuid
             * @description The model.
             */
            deviceUuid: string;
            /**
             * Format: int64
             * @description The id of the identifier.
             */
            id: number;
            /** @description A label for people. */
            label?: string | null;
            /** @description A text for people. */
            notes?: string | null;
            /**
             * Format: int64
             * @description How many bits of an advertisement they fix. Of the identifiers that an advertisement fits, the one with the most decides which model it is of.
             */
            specificity: number;
        };
        /** @description A quantity that a device model measures. */
        DeviceMetric: {
            /** @description What its values are. */
            kind: components["schemas"]["MetricKind"];
            /**
             * Format: double
             * @description The greatest value, if it is known.
             */
            max?: number | null;
            /**
             * Format: double
             * @description The least value, if it is known.
             */
            min?: number | null;
            /** @description The name of the quantity. */
            quantity: string;
            /** @description Its unit in SenML (RFC 8428); null for what has none. */
            unit?: string | null;
        };
        /** @description A quantity that a device model measures. */
        DeviceMetricRequest: {
            /** @description What its values are; what the quantity usually is when absent. */
            kind?: components["schemas"]["MetricKind"] | null;
            /**
             * Format: double
             * @description The greatest value of this model.
             */
            max?: number | null;
            /**
             * Format: double
             * @description The least value of this model, in the unit of the quantity.
             */
            min?: number | null;
            /** @description The name of the quantity, as `GET /public/quantities` lists it. */
            quantity: string;
        };
        /** @description The devices of a tenant. */
        DeviceNumbers: {
            /**
             * Format: int64
             * @description Those that are active.
             */
            active: number;
            /**
             * Format: int64
             * @description Active ones that are heard.
             */
            online: number;
            /**
             * Format: int64
             * @description Active ones that are not.
             */
            silent: number;
            /**
             * Format: int64
             * @description All that are not retired.
             */
            total: number;
        };
        /**
         * @description How a protocol is given.
         *
         *     - `BUILTIN`: A decoder of the service: `{"decoder": "ruuvi"}`.
         *     - `DECLARATIVE`: A decoder in JSON, whose schema is at `/public/schemas/decoder`.
         *     - `SCRIPT`: A decoder in JavaScript, which the service runs: `{"source": "function decode(frame) ..."}`.
         * @enum {string}
         */
        DeviceProtocolKind: "BUILTIN" | "DECLARATIVE" | "SCRIPT";
        /** @description How the advertisements of a device model are read. */
        DeviceProtocolResponse: {
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description What the kind demands. */
            definition: unknown;
            /**
             * Format: int64
             * @description The id of the protocol.
             */
            deviceProtocolId: number;
            /**
             * Format: uuid
             * @description The model.
             */
            deviceUuid: string;
            /** @description How it is given. */
            kind: components["schemas"]["DeviceProtocolKind"];
            /** @description A name for people. */
            name: string;
            /**
             * Format: int64
             * @description Rises when kind or definition change.
             */
            revision: number;
            /** @description Advertisements with what they say. */
            tests: {
                [key: string]: unknown;
            }[];
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
        };
        /** @description A protocol to try. */
        DeviceProtocolTestRequest: {
            /** @description What the kind demands, of 64 KiB at most. A member that is not known is an error. */
            definition: unknown;
            /** @description How it is given. */
            kind: components["schemas"]["DeviceProtocolKind"];
            /** @description Advertisements with what they say, in the form of docs/decoders.md, of 64 KiB at most. A test whose `expect` is empty tells what is read. */
            tests?: {
                [key: string]: unknown;
            }[] | null;
        };
        /** @description What a protocol reads. */
        DeviceProtocolTestResult: {
            /** @description One for each test, in their order. */
            tests: components["schemas"]["ProtocolTestOutcome"][];
        };
        /** @description The device that the hub sees. Without one, `matched` is the only member. */
        DeviceQueryResponse: {
            /** @description Whether the query has made it active. */
            activated?: boolean | null;
            /** @description Its status, after the query. */
            activationStatus?: components["schemas"]["ActivationStatus"] | null;
            /**
             * Format: int64
             * @description The device.
             */
            deviceInstanceId?: number | null;
            /**
             * Format: uuid
             * @description Its model.
             */
            deviceUuid?: string | null;
            /** @description Whether it is a registered device. */
            matched: boolean;
        };
        /** @description How a hub received a device. */
        DeviceReceptionsResponse: {
            /**
             * Format: int64
             * @description Advertisements received, those of windows included.
             */
            count: number;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: date-time
             * @description When the hub last received the device.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastAt: string;
            /**
             * Format: int64
             * @description The strongest signal, in dBm.
             */
            rssiMax?: number | null;
            /**
             * Format: double
             * @description The mean of the signal strengths, in dBm.
             */
            rssiMean?: number | null;
            /**
             * Format: int64
             * @description The weakest signal, in dBm; null if none is known.
             */
            rssiMin?: number | null;
        };
        /** @description A device that a hub of the caller hears best. */
        DeviceSummaryResponse: {
            /**
             * Format: date-time
             * @description When it first became active.
             * @example 2026-01-31T08:00:00.000000Z
             */
            activatedAt?: string | null;
            /** @description Where the device is in its life. */
            activationStatus: components["schemas"]["ActivationStatus"];
            /** @description The address that it advertises with, in upper case. */
            address?: string | null;
            /** @description The kind of the address. */
            addressType?: components["schemas"]["AddressType"] | null;
            /** @description What it sends as a beacon. */
            beacon?: components["schemas"]["Beacon"] | null;
            /**
             * Format: date-time
             * @description When it was registered.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description The id of the device.
             */
            deviceInstanceId: number;
            /** @description The name of the model. */
            deviceName: string;
            /**
             * Format: uuid
             * @description The model of the device.
             */
            deviceUuid: string;
            /**
             * Format: uuid
             * @description The version of the model that the device is.
             */
            deviceVersionUuid?: string | null;
            /**
             * Format: int64
             * @description How strongly it was last heard, in dBm.
             */
            lastRssiDbm?: number | null;
            /**
             * Format: date-time
             * @description When it was last heard.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastSeenAt?: string | null;
            /** @description A name for people. */
            name?: string | null;
            /** @description The hub that hears it best. */
            nearestHub?: components["schemas"]["NearestHub"] | null;
            /** @description Whether it was heard within three of its intervals, of 10 minutes at least. */
            online: boolean;
            /**
             * Format: date-time
             * @description When it was retired.
             * @example 2026-01-31T08:00:00.000000Z
             */
            retiredAt?: string | null;
            /** @description The serial number. */
            serialNumber?: string | null;
            /** @description The last value of each quantity, since the hub is the caller's. */
            state: {
                [key: string]: components["schemas"]["LastValue"];
            };
        };
        /** @description What the supplier's endpoint answered, as it is. */
        DeviceUiAnswer: {
            [key: string]: unknown;
        };
        /** @description The steps of a form, of 64 KiB at most. */
        DeviceUiConfig: {
            /** @description What is shown, in this order. */
            steps: components["schemas"]["DeviceUiStep"][];
        };
        /** @description A step of a form, filled in. */
        DeviceUiInvokeRequest: {
            /**
             * Format: int64
             * @description A form of the hub's supplier.
             */
            deviceUiId: number;
            /**
             * Format: uuid
             * @description A hub of the caller.
             */
            hubUuid: string;
            /** @description The step of the form. */
            stepId: string;
            /** @description What was entered, of 64 KiB at most. */
            values: {
                [key: string]: unknown;
            };
        };
        /**
         * @description What a form is for.
         *
         *     - `SETUP`: It sets up a new device.
         *     - `CONTROL`: It operates a device.
         *     - `DASHBOARD`: It shows what a device reports.
         * @enum {string}
         */
        DeviceUiKind: "SETUP" | "CONTROL" | "DASHBOARD";
        /** @description A form for the devices of a model. */
        DeviceUiResponse: {
            /** @description Its steps. */
            configJson: components["schemas"]["DeviceUiConfig"];
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description The id of the form.
             */
            deviceUiId: number;
            /**
             * Format: uuid
             * @description The model.
             */
            deviceUuid: string;
            /** @description What it is for. */
            kind: components["schemas"]["DeviceUiKind"];
            /** @description The language of it, such as `pt-BR`. */
            locale?: string | null;
            /** @description A name for people. */
            name: string;
            /**
             * Format: int64
             * @description Rises when `configJson` changes.
             */
            revision: number;
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
        };
        /** @description The forms that set up devices of a hub. */
        DeviceUiSetupResponse: {
            /** @description The newest 100 of kind `SETUP`. */
            forms: components["schemas"]["DeviceUiResponse"][];
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: uuid
             * @description The supplier of the hub, whose forms these are.
             */
            supplierUuid: string;
        };
        /** @description A step of a form. */
        DeviceUiStep: {
            /** @description A text for people. */
            description?: string | null;
            /** @description Headers that are sent with the answers. `Authorization` is left out. */
            external_headers?: {
                [key: string]: string;
            } | null;
            /** @description What is asked for: the JSON Schema (2020-12) of an object. */
            fields?: {
                [key: string]: unknown;
            } | null;
            /** @description Unique within the form. */
            id: string;
            /** @description Where the answers go. */
            submit?: components["schemas"]["DeviceUiSubmit"] | null;
            /** @description What is shown above it. */
            title: string;
        };
        /** @description Where the answers of a step go. */
        DeviceUiSubmit: {
            /**
             * Format: uuid
             * @description The external endpoint.
             */
            externalEndpointId: string;
            /** @description How it is called. */
            method: components["schemas"]["EndpointMethod"];
            /** @description The path at the endpoint, with or without a query. */
            path: string;
        };
        /** @description A version of a device model. */
        DeviceVersionResponse: {
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description The protocol that reads it; null for the newest of the model.
             */
            deviceProtocolId?: number | null;
            /**
             * Format: uuid
             * @description The model.
             */
            deviceUuid: string;
            /**
             * Format: uuid
             * @description The version.
             */
            deviceVersionUuid: string;
            /** @description The firmware of it. */
            firmwareVersion?: string | null;
            /** @description The hardware of it. */
            hardwareVersion?: string | null;
            /** @description A text for people. */
            notes?: string | null;
            /** @description Whether it is on sale. */
            released: boolean;
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
            /** @description Its name, unique within the model. */
            version: string;
        };
        /** @description The API key that calls. */
        DiagnosedApiKey: {
            /**
             * Format: int64
             * @description The id of the key.
             */
            apiKeyId: number;
            /**
             * Format: date-time
             * @description When the key expires; null when it does not.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt?: string | null;
            /** @description The beginning of the key. */
            keyPrefix: string;
            /** @description The name of the key. */
            name: string;
            /**
             * Format: int64
             * @description Requests allowed a minute.
             */
            rateLimitPerMinute: number;
            /** @description What the key may do. */
            scopes: string[];
        };
        /** @description The person who calls. */
        DiagnosedUser: {
            /** @description The e-mail address of the account; null where it has none. */
            email?: string | null;
            /** @description The name shown to others. */
            nickname?: string | null;
            /**
             * Format: uuid
             * @description The persona in the tenant.
             */
            personaUuid: string;
            /** @description Whether the person is a platform administrator. */
            platformAdmin: boolean;
            /**
             * Format: uuid
             * @description The account.
             */
            userUuid: string;
        };
        /** @description Who the service takes the caller for, and what the caller may do. */
        DiagnosticsResponse: {
            /** @description The address that the request came from. */
            address?: string | null;
            /** @description The key, where the credential is an API key. */
            apiKey?: components["schemas"]["DiagnosedApiKey"] | null;
            /** @description What the request was recognised by. */
            credential: components["schemas"]["Credential"];
            /**
             * Format: uint8
             * @description The permission bits of the role, added up; 0 for an API key, which has scopes instead.
             */
            permissionCode: number;
            /** @description The permissions of the role by name, or the scopes of the API key. */
            permissions: string[];
            /** @description The `X-Request-Id` of this request. */
            requestId: string;
            /** @description The role of the person in the tenant. */
            role?: components["schemas"]["Role"] | null;
            /**
             * Format: date-time
             * @description The time of the service.
             * @example 2026-01-31T08:00:00.000000Z
             */
            serverTime: string;
            /** @description The name of the tenant. */
            tenantName: string;
            /**
             * Format: uuid
             * @description The tenant.
             */
            tenantUuid: string;
            /** @description The person, where the credential is a user token. */
            user?: components["schemas"]["DiagnosedUser"] | null;
        };
        /** @description A message that could not be delivered. */
        DlqMessageResponse: {
            /**
             * Format: int64
             * @description How often it was tried.
             */
            attempts: number;
            /**
             * Format: date-time
             * @description When it was given up.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description The id of the dead letter.
             */
            dlqId: number;
            /**
             * Format: int64
             * @description How many they are.
             */
            events: number;
            /**
             * Format: int64
             * @description The first of its events.
             */
            firstEventId: number;
            /**
             * Format: int64
             * @description The last of its events.
             */
            lastEventId: number;
            /** @description The first of its events, as it was before the steps. */
            payload: unknown;
            /**
             * Format: uuid
             * @description The pipeline.
             */
            pipelineUuid: string;
            /** @description Why it could not be delivered, for people. */
            reason: string;
            /**
             * Format: int64
             * @description The status that the receiver answered; null if it answered none.
             */
            responseStatus?: number | null;
            /** @description Whether it waits to be delivered again. */
            retrying: boolean;
            /**
             * Format: int64
             * @description The revision that made the message.
             */
            revision: number;
        };
        /** @description A file to download; `GET /tenant/downloads/asset-url` returns its URL. */
        DownloadAsset: {
            /** @description The architecture that it is built for, as `uname -m` names it, or `any`. */
            architecture: string;
            /**
             * Format: int64
             * @description The id of the file.
             */
            assetId: number;
            /** @description What it is for. */
            category: components["schemas"]["ReleaseCategory"];
            /**
             * Format: date-time
             * @description When the release was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description The name of the release. */
            name: string;
            /**
             * Format: uuid
             * @description The release.
             */
            releaseUuid: string;
            /** @description The SHA-256 digest of the file, in lower-case hex. */
            sha256: string;
            /**
             * Format: int64
             * @description The size of the file.
             */
            sizeBytes: number;
            /** @description The version of the release. */
            version: string;
        };
        /** @description The newest files of a channel: of each kind, one for each name and architecture, sorted by name. */
        DownloadManifest: {
            /** @description The channel. */
            channel: string;
            /** @description Agents. */
            hubAgent: components["schemas"]["DownloadAsset"][];
            /** @description Images of a whole system. */
            hubOs: components["schemas"]["DownloadAsset"][];
            /** @description Installers. */
            installer: components["schemas"]["DownloadAsset"][];
            /** @description The highest version of the agent, of any architecture; null when there is none. */
            latestRelease?: components["schemas"]["AgentReleaseResponse"] | null;
        };
        /**
         * @description How an external endpoint is called.
         * @enum {string}
         */
        EndpointMethod: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
        /**
         * @description What happened.
         *
         *     - `hub.claimed`: A hub was claimed, for the first time or again.
         *     - `device.registered`: A device was registered.
         *     - `device.activated`: A device became active.
         *     - `device.retired`: A device was retired.
         *     - `supplier_link.created`: A user linked their account to the supplier.
         *     - `supplier_link.revoked`: A user ended such a link.
         * @enum {string}
         */
        EventType: "hub.claimed" | "device.registered" | "device.activated" | "device.retired" | "supplier_link.created" | "supplier_link.revoked";
        /** @description What is shown of credentials. */
        ExternalEndpointAuth: {
            /** @description `BEARER`, `BASIC` or `HEADER`. */
            type: string;
        };
        /** @description A server of the tenant. */
        ExternalEndpointRequest: {
            /** @description The credentials that the endpoint asks for: `{"type": "BEARER", "token"}`, `{"type": "BASIC", "username", "password"}` or `{"type": "HEADER", "name", "value"}`. Absent or empty keeps what there is. */
            authConfig?: {
                [key: string]: unknown;
            } | null;
            /**
             * Format: uri
             * @description What paths are appended to: `https://`, a host, and a path or none.
             */
            baseUrl: string;
            /** @description A name for people. */
            name: string;
            /** @description How the domain is proved. */
            verify_method: components["schemas"]["VerifyMethod"];
        };
        /** @description An external endpoint. */
        ExternalEndpointResponse: {
            /** @description The kind of credentials it has; null if none. */
            authConfig?: components["schemas"]["ExternalEndpointAuth"] | null;
            /** @description What paths are appended to. */
            baseUrl: string;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description The host of `baseUrl`. */
            domain: string;
            /** @description Whether the proof was found when it was last looked for. Others are not called. */
            domain_verified: boolean;
            /**
             * Format: uuid
             * @description The id of the endpoint.
             */
            id: string;
            /** @description A name for people. */
            name: string;
            /**
             * Format: date-time
             * @description When it was last changed or verified.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
            /**
             * Format: date-time
             * @description When the proof was found.
             * @example 2026-01-31T08:00:00.000000Z
             */
            verifiedAt?: string | null;
            /** @description Why the proof was not found; null if it was, or was not looked for. */
            verify_error?: string | null;
            /** @description How the domain is proved. */
            verify_method: components["schemas"]["VerifyMethod"];
            /** @description What the record or file has to contain. */
            verify_token: string;
        };
        /** @description An active release of a channel, and where its file is. */
        FeedEntry: {
            /** @description The architecture that it is built for, as `uname -m` names it, or `any`. */
            architecture: string;
            /** @description What it is for. */
            category: components["schemas"]["ReleaseCategory"];
            /** @description The manifest, byte for byte as it was signed. */
            manifest: string;
            /** @description The name of the release. */
            name: string;
            /**
             * Format: uuid
             * @description The release.
             */
            releaseUuid: string;
            /** @description The SHA-256 digest of the file, in lower-case hex. */
            sha256: string;
            /** @description A minisign signature of `manifest`. */
            signature: string;
            /**
             * Format: int64
             * @description The size of the file.
             */
            sizeBytes: number;
            /** @description Accepts range requests and needs no credential. A path of this service while it has no `public-url`, or a URL of another store. */
            url: string;
            /**
             * Format: date-time
             * @description When the URL expires.
             * @example 2026-01-31T08:00:00.000000Z
             */
            urlExpiresAt: string;
            /** @description The version of the release. */
            version: string;
        };
        /** @description What is wrong with one field of a request. */
        FieldError: {
            /** @description The path to the field, such as `events[3].observedAt`, or the name of a parameter or header. */
            field: string;
            /** @description What the field must be. */
            message: string;
        };
        /** @description A new floor plan. Its image is put afterwards. */
        FloorPlanCreateRequest: {
            /** @description Where hubs of the tenant are, each at most once. */
            hubs?: components["schemas"]["FloorPlanHub"][] | null;
            /** @description A name for people. */
            name: string;
            /**
             * Format: double
             * @description How wide what the image shows is, in metres. The millimetre is kept.
             */
            widthMetres?: number | null;
        };
        /** @description Where a hub is on a plan. */
        FloorPlanHub: {
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: double
             * @description From the left, as a part of the width. Six decimals are kept.
             */
            x: number;
            /**
             * Format: double
             * @description From the top, as a part of the height. Six decimals are kept.
             */
            y: number;
        };
        /** @description What is told of an image. */
        FloorPlanImage: {
            /** @description Its media type. */
            mediaType: string;
            /** @description Its SHA-256 digest, in lower-case hex. */
            sha256: string;
            /**
             * Format: int64
             * @description Its size.
             */
            sizeBytes: number;
        };
        /** @description A floor plan. */
        FloorPlanResponse: {
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: uuid
             * @description The id of the plan.
             */
            floorPlanUuid: string;
            /** @description Where hubs of the tenant are. A hub that is released is on no plan any more. */
            hubs: components["schemas"]["FloorPlanHub"][];
            /** @description What `/image` answers; null if there is none yet. */
            image?: components["schemas"]["FloorPlanImage"] | null;
            /** @description A name for people. */
            name: string;
            /**
             * Format: date-time
             * @description When it was last changed by somebody.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
            /**
             * Format: double
             * @description How wide what the image shows is, in metres; null if that is not known.
             */
            widthMetres?: number | null;
        };
        /** @description A change of a floor plan. What is absent stays. */
        FloorPlanUpdateRequest: {
            /** @description Where hubs of the tenant are, each at most once. It replaces all that were placed before. */
            hubs?: components["schemas"]["FloorPlanHub"][] | null;
            /** @description A name for people. */
            name?: string | null;
            /**
             * Format: double
             * @description How wide what the image shows is, in metres; null if that is not known.
             */
            widthMetres?: number | null;
        };
        /** @description Whose password is to be set anew. */
        ForgotPasswordRequest: {
            /**
             * Format: email
             * @description The e-mail address of the account, read without regard to case.
             */
            email: string;
        };
        /**
         * @description What is done with a characteristic.
         *
         *     - `READ`: Its value is read.
         *     - `WRITE`: A value is written and acknowledged.
         *     - `WRITE_WITHOUT_RESPONSE`: A value is written.
         *     - `NOTIFY`: The next notification is awaited.
         * @enum {string}
         */
        GattOperation: "READ" | "WRITE" | "WRITE_WITHOUT_RESPONSE" | "NOTIFY";
        /** @description One operation on a characteristic. */
        GattStep: {
            /** @description The characteristic, in the same forms. */
            characteristic: string;
            /** @description What is done. */
            operation: components["schemas"]["GattOperation"];
            /** @description The service: 4 or 8 hexadecimal digits, or a UUID in full. */
            service: string;
            /**
             * Format: int64
             * @description How long the step may take; the hub decides when absent.
             */
            timeoutMillis?: number | null;
            /** @description What is written: hexadecimal text in which `{name}` stands for the bytes of a parameter, or a list of `{"hex"}` and `{"parameter", "type"}`. Of the two that write only. */
            value?: unknown;
        };
        /** @description A member to add, or another role for one. */
        GrantAccessRequest: {
            /**
             * Format: uuid
             * @description The default persona of a person (`personaUuid` of a login), or the one that the person has in this tenant.
             */
            personaUuid: string;
            /** @description The role to grant. Only an OWNER may grant OWNER. */
            role: components["schemas"]["Role"];
        };
        /** @description The health of the service. */
        Health: {
            /** @description `ok`. */
            status: string;
            /** @description The version of the program. */
            version: string;
        };
        /** @description The answer to a refresh. The refresh token stays as it was. */
        HubAccess: {
            /** @description Replaces the access token before it. */
            accessToken: string;
            /**
             * Format: date-time
             * @description When the access token expires.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt: string;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
        };
        /** @description What to change about an adapter; a member that is absent or null leaves the stored value alone. */
        HubAdapterUpdateRequest: {
            /** @description What the adapter is used for. */
            role?: components["schemas"]["AdapterRole"] | null;
            /**
             * Format: uuid
             * @description The tenant itself; no other is accepted.
             */
            supplier_uuid?: string | null;
        };
        /** @description Whether a hub is blocked. */
        HubBlockResponse: {
            /** @description Whether it is blocked. */
            blocked: boolean;
            /**
             * Format: date-time
             * @description Since when it is blocked.
             * @example 2026-01-31T08:00:00.000000Z
             */
            blockedAt?: string | null;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
        };
        /** @description An app that a bundle brought to a hub. */
        HubBundleAppResponse: {
            /**
             * Format: uuid
             * @description The release.
             */
            appReleaseUuid: string;
            /**
             * Format: uuid
             * @description The app.
             */
            appUuid: string;
            /**
             * Format: uuid
             * @description The job that installs it.
             */
            hubJobUuid: string;
            /** @description The name of the app. */
            name: string;
            /** @description The version of the release. */
            version: string;
        };
        /** @description What a bundle brought to a hub. */
        HubBundleResponse: {
            /**
             * Format: date-time
             * @description When the hub was claimed with it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            appliedAt: string;
            /** @description The apps, each with the job that installs it. */
            apps: components["schemas"]["HubBundleAppResponse"][];
            /**
             * Format: uuid
             * @description The bundle.
             */
            bundleUuid: string;
            /** @description The device models. */
            devices: components["schemas"]["BundleDeviceResponse"][];
            /** @description The name of the bundle. */
            name: string;
            /** @description The pipelines that are bound to the hub. */
            pipelines: string[];
            /** @description Where the bundle is in its life. */
            status: components["schemas"]["BundleStatus"];
        };
        /** @description `POST /v1/hubs/claim`: exchanges a claim code for the credentials of a hub. */
        HubClaimRequest: {
            /** @description The version of the agent. */
            agentVersion?: string | null;
            /** @description The claim code: 16 letters and digits such as `7K3M-9QXT-0V4B-HD2R`. Case, dashes and blanks are ignored. */
            claimCode: string;
            /** @description The stable hardware identity of the hub, 1 to 200 characters. A number is read as its digits. */
            deviceInstanceId: components["schemas"]["StringOrInteger"];
            /** @description The host name of the machine. */
            hostname?: string | null;
            /** @description A label for people, which the tenant can change later. */
            hubIdentifier?: string | null;
            /** @description The operating system of the machine. */
            os?: components["schemas"]["OperatingSystem"] | null;
            /** @description The refresh token of the hub's last claim, if it still has one: proof that it is the hub whose credentials a claim replaces. */
            refreshToken?: string | null;
        };
        /** @description The answer to a claim. The refresh token is returned here and never again. */
        HubCredentials: {
            /** @description Sent as `Authorization: Bearer ...`. */
            accessToken: string;
            /**
             * Format: date-time
             * @description When the access token expires.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt: string;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /** @description Gets a new access token when this one has expired. */
            refreshToken: string;
            /**
             * Format: uuid
             * @description The tenant that the hub belongs to now.
             */
            tenantUuid: string;
        };
        /** @description A hub with its adapters. */
        HubDetailResponse: {
            /** @description Its Bluetooth adapters. */
            adapters: components["schemas"]["AdapterView"][];
            /** @description The version of its agent, as last reported. */
            agentVersion?: string | null;
            /**
             * Format: date-time
             * @description Since when it is blocked; null when it is not.
             * @example 2026-01-31T08:00:00.000000Z
             */
            blockedAt?: string | null;
            /**
             * Format: date-time
             * @description The last claim.
             * @example 2026-01-31T08:00:00.000000Z
             */
            claimedAt: string;
            /**
             * Format: date-time
             * @description The first claim.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description A text for people. */
            description?: string | null;
            /** @description The hardware identity of the hub. */
            deviceInstanceId: string;
            /** @description The host name of the machine. */
            hostname?: string | null;
            /** @description The label of the hub, for people. */
            hubIdentifier?: string | null;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: date-time
             * @description The last upload, report, claim or refresh.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastSeenAt?: string | null;
            /**
             * Format: date-time
             * @description The last telemetry.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastTelemetryAt?: string | null;
            /** @description Whether telemetry arrived within the last 10 minutes. */
            online: boolean;
            /** @description The operating system of the machine. */
            os?: components["schemas"]["OperatingSystem"] | null;
            /**
             * Format: uuid
             * @description The app user that the hub belongs to.
             */
            ownerUserUuid?: string | null;
            /** @description The status of the hub. */
            status: components["schemas"]["HubStatus"];
        };
        /** @description An app that should be installed on a hub, or that a job is about. */
        HubInstalledAppResponse: {
            /**
             * Format: uuid
             * @description The app.
             */
            appUuid: string;
            /**
             * Format: uuid
             * @description The last job about the app.
             */
            hubJobUuid: string;
            /**
             * Format: uuid
             * @description The release of the last installation that succeeded.
             */
            installedReleaseUuid?: string | null;
            /** @description The version of that release. */
            installedVersion?: string | null;
            /** @description The status of that job. */
            jobStatus: components["schemas"]["HubJobStatus"];
            /** @description What that job does. */
            jobType: components["schemas"]["HubJobType"];
            /**
             * Format: uuid
             * @description The release that should be installed once all jobs have finished; null when there should be none.
             */
            releaseUuid?: string | null;
            /**
             * Format: date-time
             * @description When this last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
            /** @description The version of that release. */
            version?: string | null;
        };
        /** @description A job, with what the hub reads of it and how it ended. */
        HubJobDetailResponse: {
            /**
             * Format: uuid
             * @description The app to install or remove.
             */
            appUuid?: string | null;
            /**
             * Format: int64
             * @description How often the hub was given the job.
             */
            attempts: number;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When the job expires if it has not finished.
             * @example 2026-01-31T08:00:00.000000Z
             */
            deadlineAt: string;
            /** @description The job as the desired state of the hub lists it. */
            desired: components["schemas"]["DesiredJob"];
            /** @description The last message about it, for people. */
            detail?: string | null;
            /**
             * Format: date-time
             * @description When it was first dispatched to the hub.
             * @example 2026-01-31T08:00:00.000000Z
             */
            dispatchedAt?: string | null;
            /**
             * Format: date-time
             * @description When it finished.
             * @example 2026-01-31T08:00:00.000000Z
             */
            finishedAt?: string | null;
            /** @description Whether to try a release that failed on this hub before. */
            force: boolean;
            /**
             * Format: uuid
             * @description The job.
             */
            hubJobUuid: string;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: uuid
             * @description The update policy that the job was created for.
             */
            policyUuid?: string | null;
            /**
             * Format: int64
             * @description Percent done, as far as the hub reports it.
             */
            progress?: number | null;
            /**
             * Format: uuid
             * @description The release to install: of the jobs, or of the agent.
             */
            releaseUuid?: string | null;
            /** @description The `detail` of the event that ended it. Of a failure, `reason` is a stable word. */
            result?: unknown;
            /**
             * Format: date-time
             * @description When the hub began it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            startedAt?: string | null;
            /** @description Its status. */
            status: components["schemas"]["HubJobStatus"];
            /** @description What it does. */
            type: components["schemas"]["HubJobType"];
            /**
             * Format: date-time
             * @description When it last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
            /** @description The version of that release. */
            version?: string | null;
            /** @description When in the day, in the time zone of the hub, the change may be applied. */
            window?: components["schemas"]["MaintenanceWindow"] | null;
        };
        /**
         * @description What happened to a job.
         *
         *     - `ACCEPTED`: The hub has accepted the job.
         *     - `PROGRESS`: The hub has made progress.
         *     - `LOG`: A remark that changes no status.
         *     - `SUCCEEDED`: The job is done.
         *     - `FAILED`: The job failed.
         * @enum {string}
         */
        HubJobEventKind: "ACCEPTED" | "PROGRESS" | "LOG" | "SUCCEEDED" | "FAILED";
        /** @description `POST /v1/hubs/{hubUuid}/jobs/{hubJobUuid}/events`: what happened to a job. Sent until it is answered; the same `eventUuid` is stored once. */
        HubJobEventRequest: {
            /** @description An object of at most 16 KiB with what else there is to know. Of a failure, `reason` is a stable word such as `DIGEST_MISMATCH`. */
            detail?: Record<string, never> | null;
            /**
             * Format: uuid
             * @description Identifies the event.
             */
            eventUuid: string;
            /** @description What happened. */
            kind: components["schemas"]["HubJobEventKind"];
            /** @description For people. */
            message?: string | null;
            /**
             * Format: date-time
             * @description When it happened, by the clock of the hub.
             * @example 2026-01-31T08:00:00.000000Z
             */
            occurredAt: string;
            /**
             * Format: int64
             * @description Percent done.
             */
            progress?: number | null;
        };
        /** @description One event of a job. */
        HubJobEventResponse: {
            /** @description What else there is to know. Of a failure, `reason` is a stable word. */
            detail?: unknown;
            /**
             * Format: uuid
             * @description The id that the hub gave the event.
             */
            eventUuid: string;
            /**
             * Format: int64
             * @description The id: `receivedAt` in microseconds since 1970, unique and rising within the tenant.
             */
            hubJobEventId: number;
            /**
             * Format: uuid
             * @description The job.
             */
            hubJobUuid: string;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /** @description What happened. */
            kind: components["schemas"]["HubJobEventKind"];
            /** @description For people. */
            message?: string | null;
            /**
             * Format: date-time
             * @description When it happened, by the clock of the hub.
             * @example 2026-01-31T08:00:00.000000Z
             */
            occurredAt: string;
            /**
             * Format: int64
             * @description Percent done.
             */
            progress?: number | null;
            /**
             * Format: date-time
             * @description When the service received it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            receivedAt: string;
        };
        /** @description A job of a hub. */
        HubJobResponse: {
            /**
             * Format: uuid
             * @description The app to install or remove.
             */
            appUuid?: string | null;
            /**
             * Format: int64
             * @description How often the hub was given the job.
             */
            attempts: number;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When the job expires if it has not finished.
             * @example 2026-01-31T08:00:00.000000Z
             */
            deadlineAt: string;
            /** @description The last message about it, for people. */
            detail?: string | null;
            /**
             * Format: date-time
             * @description When it was first dispatched to the hub.
             * @example 2026-01-31T08:00:00.000000Z
             */
            dispatchedAt?: string | null;
            /**
             * Format: date-time
             * @description When it finished.
             * @example 2026-01-31T08:00:00.000000Z
             */
            finishedAt?: string | null;
            /** @description Whether to try a release that failed on this hub before. */
            force: boolean;
            /**
             * Format: uuid
             * @description The job.
             */
            hubJobUuid: string;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: uuid
             * @description The update policy that the job was created for.
             */
            policyUuid?: string | null;
            /**
             * Format: int64
             * @description Percent done, as far as the hub reports it.
             */
            progress?: number | null;
            /**
             * Format: uuid
             * @description The release to install: of the jobs, or of the agent.
             */
            releaseUuid?: string | null;
            /**
             * Format: date-time
             * @description When the hub began it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            startedAt?: string | null;
            /** @description Its status. */
            status: components["schemas"]["HubJobStatus"];
            /** @description What it does. */
            type: components["schemas"]["HubJobType"];
            /**
             * Format: date-time
             * @description When it last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
            /** @description The version of that release. */
            version?: string | null;
            /** @description When in the day, in the time zone of the hub, the change may be applied. */
            window?: components["schemas"]["MaintenanceWindow"] | null;
        };
        /**
         * @description The status of a job: `PENDING`, `DISPATCHED`, `RUNNING`, then `SUCCEEDED` or `FAILED`; from any of the first three also `CANCELLED` or `EXPIRED`.
         *
         *     - `PENDING`: Not dispatched to the hub yet.
         *     - `DISPATCHED`: Dispatched to the hub.
         *     - `RUNNING`: The hub has started it.
         *     - `SUCCEEDED`: The hub did it.
         *     - `FAILED`: The hub could not do it.
         *     - `CANCELLED`: An operator cancelled it.
         *     - `EXPIRED`: Its deadline passed.
         * @enum {string}
         */
        HubJobStatus: "PENDING" | "DISPATCHED" | "RUNNING" | "SUCCEEDED" | "FAILED" | "CANCELLED" | "EXPIRED";
        /**
         * @description What a job does.
         *
         *     - `APP_INSTALL`: Installs a release of an app.
         *     - `APP_REMOVE`: Removes an app.
         *     - `SELF_UPDATE`: Updates the agent.
         *     - `DEVICE_COMMAND`: Connects to a device.
         * @enum {string}
         */
        HubJobType: "APP_INSTALL" | "APP_REMOVE" | "SELF_UPDATE" | "DEVICE_COMMAND";
        /** @description One log entry of a hub. */
        HubLogResponse: {
            /** @description What the hub sent: any JSON. */
            data: unknown;
            /**
             * Format: int64
             * @description The id: `receivedAt` in microseconds since 1970, unique and rising within the tenant.
             */
            hubLogId: number;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: date-time
             * @description When the service received it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            receivedAt: string;
        };
        /** @description The hubs of a tenant. */
        HubNumbers: {
            /**
             * Format: int64
             * @description Those of which no adapter receives anything.
             */
            blind: number;
            /**
             * Format: int64
             * @description Those that are blocked.
             */
            blocked: number;
            /**
             * Format: int64
             * @description Those with telemetry of the last ten minutes.
             */
            online: number;
            /**
             * Format: int64
             * @description All of them.
             */
            total: number;
        };
        /** @description `POST /v1/hubs/refresh`, with the current access token, even an expired one, in the `Authorization` header. */
        HubRefreshRequest: {
            /** @description The refresh token from the claim. */
            refreshToken: string;
        };
        /** @description A hub that no longer belongs to anyone. */
        HubReleaseResponse: {
            /**
             * Format: uuid
             * @description The hub. Its hardware becomes another hub when it is claimed.
             */
            hubUuid: string;
            /**
             * Format: date-time
             * @description When it was released.
             * @example 2026-01-31T08:00:00.000000Z
             */
            releasedAt: string;
        };
        /** @description What operators set for a hub. */
        HubSettings: {
            /** @description Role by adapter address. An adapter that is not named scans. */
            adapterRoles?: {
                [key: string]: components["schemas"]["AdapterRole"];
            };
            /** @description The label of the hub, for people. */
            hubIdentifier?: string | null;
            /** @description When the hub uploads. */
            uploads?: components["schemas"]["UploadPauses"] | null;
            /**
             * @description Whether the hub reports no BLE events: its owner has not consented to it.
             * @default false
             */
            withholdEvents: boolean;
        };
        /**
         * @description The status of a hub: the first that applies.
         *
         *     - `BLOCKED`: A platform administrator has blocked it.
         *     - `ONLINE`: Telemetry arrived within the last 10 minutes.
         *     - `OFFLINE`: No telemetry arrived within the last 10 minutes.
         * @enum {string}
         */
        HubStatus: "BLOCKED" | "ONLINE" | "OFFLINE";
        /** @description A hub. */
        HubSummaryResponse: {
            /** @description The version of its agent, as last reported. */
            agentVersion?: string | null;
            /**
             * Format: date-time
             * @description The last claim.
             * @example 2026-01-31T08:00:00.000000Z
             */
            claimedAt: string;
            /**
             * Format: date-time
             * @description The first claim.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description The hardware identity of the hub. */
            deviceInstanceId: string;
            /** @description The host name of the machine. */
            hostname?: string | null;
            /** @description The label of the hub, for people. */
            hubIdentifier?: string | null;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: date-time
             * @description The last upload, report, claim or refresh.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastSeenAt?: string | null;
            /**
             * Format: date-time
             * @description The last telemetry.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastTelemetryAt?: string | null;
            /** @description Whether telemetry arrived within the last 10 minutes. */
            online: boolean;
            /** @description The status of the hub. */
            status: components["schemas"]["HubStatus"];
        };
        /** @description One telemetry record of a hub. */
        HubTelemetryResponse: {
            /** @description What the hub sent: any JSON. */
            data: unknown;
            /**
             * Format: int64
             * @description The id: `receivedAt` in microseconds since 1970, unique and rising within the tenant.
             */
            hubTelemetryId: number;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: date-time
             * @description When the service received it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            receivedAt: string;
        };
        /** @description `GET /v1/test`: the caller as the service identifies it. */
        HubTest: {
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: uuid
             * @description The tenant that the hub belongs to.
             */
            tenantUuid: string;
            /**
             * Format: date-time
             * @description The time of the service.
             * @example 2026-01-31T08:00:00.000000Z
             */
            time: string;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone, empty text removes it. */
        HubUpdateRequest: {
            /** @description A text for people. */
            description?: string | null;
            /** @description A label for people. */
            hubIdentifier?: string | null;
        };
        /** @description Who the tenant is offered to: a person or another tenant, exactly one of them. */
        InitiateTransferRequest: {
            /** @description A message to the recipient. */
            message?: string | null;
            /**
             * Format: uuid
             * @description The default persona of a person (`personaUuid` of a login), or the one that the person has in this tenant.
             */
            targetPersonaUuid?: string | null;
            /**
             * Format: uuid
             * @description Another tenant; any member of it may accept or reject.
             */
            targetTenantUuid?: string | null;
        };
        /** @description An app on a hub. */
        InstalledApp: {
            /**
             * Format: uuid
             * @description The app.
             */
            appUuid: string;
            /** @description Why it is in that state, where there is something to say. */
            message?: string | null;
            /**
             * Format: uuid
             * @description The release of it that is installed.
             */
            releaseUuid: string;
            /**
             * Format: int64
             * @description How often systemd has restarted it since it was installed.
             * @default 0
             */
            restarts: number;
            /**
             * Format: date-time
             * @description When it entered its state, by the clock of the hub.
             * @example 2026-01-31T08:00:00.000000Z
             */
            since: string;
            /** @description Whether it runs. */
            state: components["schemas"]["InstalledAppState"];
            /** @description The version of that release. */
            version: string;
        };
        /**
         * @description Whether an app on a hub runs.
         *
         *     - `RUNNING`: It runs.
         *     - `STOPPED`: It ended, and is not restarted.
         *     - `FAILED`: It ends again and again.
         * @enum {string}
         */
        InstalledAppState: "RUNNING" | "STOPPED" | "FAILED";
        /** @description An app as the hub last reported it. */
        InstalledAppView: {
            /**
             * Format: uuid
             * @description The app.
             */
            appUuid: string;
            /** @description Why it is in that state. */
            message?: string | null;
            /**
             * Format: uuid
             * @description The release that is installed.
             */
            releaseUuid: string;
            /**
             * Format: date-time
             * @description When the hub reported it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            reportedAt: string;
            /**
             * Format: int64
             * @description How often it was restarted since it was installed.
             */
            restarts: number;
            /**
             * Format: date-time
             * @description When it entered its state, by the clock of the hub.
             * @example 2026-01-31T08:00:00.000000Z
             */
            since: string;
            /** @description Whether it runs. */
            state: components["schemas"]["InstalledAppState"];
            /** @description The version of that release. */
            version: string;
        };
        /** @description `PUT /v1/hubs/{hubUuid}/installed-apps`: every app that the hub has now. */
        InstalledApps: {
            /** @description All apps. */
            apps: components["schemas"]["InstalledApp"][];
        };
        /** @description A project that was forgotten. */
        InvalidatedProject: {
            /** @description The project. */
            projectId: string;
            /** @description `INVALIDATED`. */
            status: string;
        };
        /** @description The invitation to accept. */
        InvitationAcceptRequest: {
            /** @description The token from the mail. */
            token: string;
        };
        /**
         * @description The status of an invitation.
         *
         *     - `PENDING`: It can be accepted.
         *     - `ACCEPTED`: It was accepted.
         *     - `REVOKED`: It was revoked.
         *     - `EXPIRED`: Nobody accepted it in time.
         * @enum {string}
         */
        InvitationStatus: "PENDING" | "ACCEPTED" | "REVOKED" | "EXPIRED";
        /** @description A person who can be added by persona. */
        InviteCandidate: {
            /** @description The e-mail address of the account, if it has one. */
            email?: string | null;
            /** @description The name shown to others. */
            nickname?: string | null;
            /**
             * Format: uuid
             * @description The default persona of the person.
             */
            personaUuid: string;
            /**
             * Format: uuid
             * @description The account of the person.
             */
            userUuid: string;
        };
        /** @description What was created: an invitation for an e-mail address, a member for a persona; the other is null. */
        InviteResponse: {
            /** @description The invitation. */
            invitation?: components["schemas"]["TenantInvitationResponse"] | null;
            /** @description The member. */
            member?: components["schemas"]["TenantMemberResponse"] | null;
        };
        /** @description The jobs of hubs. */
        JobNumbers: {
            /**
             * Format: int64
             * @description Those of the window that failed or expired.
             */
            failed: number;
            /**
             * Format: int64
             * @description Those that run now.
             */
            running: number;
        };
        /** @description The tenants that join: all of them, or none. */
        JoinTenantsRequest: {
            /** @description Tenants that the caller manages. */
            tenantUuids: string[];
        };
        /** @description A JSON Web Key Set (RFC 7517): what access tokens are checked with. */
        KeySet: {
            /** @description The keys in use. */
            keys: components["schemas"]["PublicKey"][];
        };
        /** @description The last value of a quantity. */
        LastValue: {
            /**
             * Format: date-time
             * @description When the device sent it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            at: string;
            /** @description The unit of a number, as in the SenML registry; null for what has none. */
            unit?: string | null;
            /** @description A number, a text or a boolean. */
            value: number | string | boolean;
        };
        /** @description The tenants that leave, with their devices: all of them, or none. */
        LeaveTenantsRequest: {
            /** @description Tenants of the project that the caller manages. */
            tenantUuids: string[];
        };
        /** @description A device model of the library, with how it is recognised and read. */
        LibraryModelDetailResponse: {
            /** @description Other names under which it is sold. */
            aliases: string[];
            /** @description Who sells it. */
            brand: string;
            /** @description What kind of device it is. */
            category: string;
            /** @description A text for people. */
            description?: string | null;
            /**
             * Format: uint32
             * @description How often a device sends.
             */
            expectedIntervalSeconds?: number | null;
            /** @description What its advertisements look like: alternatives, in the form in which a tenant's identifiers are created. */
            identifiers: unknown[];
            /** @description What names it as a `template`, such as `ruuvi/ruuvitag`. */
            key: string;
            /** @description What it measures. */
            metrics: components["schemas"]["DeviceMetric"][];
            /** @description What the maker calls it. */
            model: string;
            /** @description Its name. */
            name: string;
            /** @description How its advertisements are read: `kind` and `definition` as in a tenant's protocol. */
            protocol: unknown;
            /** @description Where the format is published. */
            source: string;
        };
        /** @description A device model of the library. */
        LibraryModelResponse: {
            /** @description Other names under which it is sold. */
            aliases: string[];
            /** @description Who sells it. */
            brand: string;
            /** @description What kind of device it is. */
            category: string;
            /** @description A text for people. */
            description?: string | null;
            /**
             * Format: uint32
             * @description How often a device sends.
             */
            expectedIntervalSeconds?: number | null;
            /** @description What names it as a `template`, such as `ruuvi/ruuvitag`. */
            key: string;
            /** @description What it measures. */
            metrics: components["schemas"]["DeviceMetric"][];
            /** @description What the maker calls it. */
            model: string;
            /** @description Its name. */
            name: string;
        };
        /**
         * @description Whether a link is in force.
         *
         *     - `ACTIVE`: It is in force.
         *     - `REVOKED`: Its user has ended it.
         * @enum {string}
         */
        LinkStatus: "ACTIVE" | "REVOKED";
        /** @description The credentials of an account. */
        LoginRequest: {
            /**
             * Format: email
             * @description The e-mail address, read without regard to case.
             */
            email: string;
            /** @description The password. */
            password: string;
        };
        /** @description A part of the log. */
        LostRange: {
            /**
             * Format: date-time
             * @description Events received at this time or later.
             * @example 2026-01-31T08:00:00.000000Z
             */
            from: string;
            /**
             * Format: date-time
             * @description Events received before this time.
             * @example 2026-01-31T08:00:00.000000Z
             */
            to: string;
        };
        /** @description A part of the day, in the time zone of the hub. It spans midnight if `end` is the smaller. */
        MaintenanceWindow: {
            /** @description When it ends, as `HH:MM`; another time than `start`. */
            end: string;
            /** @description When it begins, as `HH:MM`. */
            start: string;
        };
        /**
         * @description Where the text of a manual is.
         *
         *     - `MARKDOWN`: In `content`.
         *     - `LINK`: Behind `url`.
         * @enum {string}
         */
        ManualFormat: "MARKDOWN" | "LINK";
        /** @description The model of an event, and how it was recognised. */
        MatchedResponse: {
            /**
             * Format: uuid
             * @description The model.
             */
            deviceUuid: string;
            /**
             * Format: int64
             * @description The identifier that won; absent of a registered device that no identifier fits.
             */
            identifierId?: number | null;
            /**
             * Format: uint32
             * @description How many bits it fixes.
             */
            specificity?: number | null;
        };
        /** @description A value that was read from an advertisement. */
        MeasurementResponse: {
            /**
             * Format: uint8
             * @description Of a quantity that occurs more than once: its place.
             */
            index?: number | null;
            /** @description `STATE`, `EVENT` or `COUNTER`; absent of a measurement. */
            kind?: string | null;
            /** @description One of `GET /public/quantities`. */
            quantity: string;
            /** @description Of a number: a unit of the SenML registry. */
            unit?: string | null;
            /** @description A number, a text or a boolean. */
            value: number | string | boolean;
        };
        /**
         * @description What a value is, which decides whether it may be sampled or folded.
         *
         *     - `MEASUREMENT`: A physical value that can be sampled.
         *     - `STATE`: A state that lasts until it changes.
         *     - `EVENT`: Something that happened.
         *     - `COUNTER`: A number that only rises until it starts over.
         * @enum {string}
         */
        MetricKind: "MEASUREMENT" | "STATE" | "EVENT" | "COUNTER";
        /** @description The hub that hears a device best. */
        NearestHub: {
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: int64
             * @description How strongly it hears the device, in dBm.
             */
            rssiDbm?: number | null;
            /**
             * Format: date-time
             * @description Since when it is the nearest.
             * @example 2026-01-31T08:00:00.000000Z
             */
            since?: string | null;
        };
        /**
         * @description What a notice tells of.
         *
         *     - `HUB_OFFLINE`: A hub has not been in contact for `threshold` minutes; 10 when absent.
         *     - `HUB_ONLINE`: A hub that was offline for `threshold` minutes is back; 10 when absent.
         *     - `HUB_BLIND`: No adapter of a hub has received anything for `threshold` minutes; 5 when absent.
         *     - `JOB_FAILED`: A job of a hub has failed or expired.
         *     - `ROLLOUT_HALTED`: The rollout of a release was halted.
         *     - `DEVICE_SILENT`: A device has been silent for `threshold` minutes more than usual; 5 when absent.
         *     - `DEVICE_BATTERY_LOW`: The battery of a device has `threshold` percent or less; 15 when absent.
         *     - `DEVICE_THRESHOLD`: A value of a device is above or below `threshold`.
         *     - `PIPELINE_FAILING`: A pipeline has not delivered for `threshold` minutes; 60 when absent.
         *     - `CONSENT_WITHDRAWN`: A user has withdrawn their consent.
         *     - `CERTIFICATE_EXPIRING`: The certificate of a hub expires in `threshold` days; 14 when absent.
         * @enum {string}
         */
        NoticeType: "HUB_OFFLINE" | "HUB_ONLINE" | "HUB_BLIND" | "JOB_FAILED" | "ROLLOUT_HALTED" | "DEVICE_SILENT" | "DEVICE_BATTERY_LOW" | "DEVICE_THRESHOLD" | "PIPELINE_FAILING" | "CONSENT_WITHDRAWN" | "CERTIFICATE_EXPIRING";
        /** @description Something that somebody should know. */
        NotificationResponse: {
            /** @description More about it; empty when there is no more to say. */
            body: string;
            /**
             * Format: date-time
             * @description When it was made.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description The device it is about.
             */
            deviceInstanceId?: number | null;
            /**
             * Format: uuid
             * @description The hub it is about; of several hubs null.
             */
            hubUuid?: string | null;
            /**
             * Format: int64
             * @description The id of the notice.
             */
            notificationId: number;
            /**
             * Format: date-time
             * @description When the caller read it; null while they have not.
             * @example 2026-01-31T08:00:00.000000Z
             */
            readAt?: string | null;
            /** @description How bad it is. */
            severity: components["schemas"]["Severity"];
            /**
             * Format: uuid
             * @description The tenant.
             */
            tenantUuid?: string | null;
            /** @description What happened, in a few words. */
            title: string;
            /** @description What it tells of. */
            type: components["schemas"]["NoticeType"];
        };
        /** @description What the tenant wants to be told, and how. */
        NotificationSettingResponse: {
            /** @description How. */
            channel: components["schemas"]["Channel"];
            /** @description Whether to tell. */
            enabled: boolean;
            /** @description Whom. Of a URL, those who may not change the setting see the origin alone. */
            target?: string | null;
            /** @description From which value on; null for the default. */
            threshold?: components["schemas"]["Threshold"] | null;
            /** @description What to tell of. */
            type: components["schemas"]["NoticeType"];
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
        };
        /** @description An operating system. */
        OperatingSystem: {
            /** @description The architecture of the machine as `uname -m` names it, such as `aarch64`. */
            arch?: string | null;
            /** @description Its name, such as `Debian GNU/Linux`. */
            name?: string | null;
            /** @description Its version, such as `12`. */
            version?: string | null;
        };
        /**
         * @description What becomes of an advertisement that no rule fits.
         *
         *     - `FORWARD`: It is passed on.
         *     - `DROP`: It is dropped.
         *     - `WINDOW`: Hubs fold the advertisements of a device into windows.
         * @enum {string}
         */
        Otherwise: "FORWARD" | "DROP" | "WINDOW";
        /** @description One page of records. */
        PageAuditLogResponse: {
            /** @description The records of this page. */
            content: components["schemas"]["AuditLogResponse"][];
            /** @description Whether this is the first page. */
            first: boolean;
            /** @description Whether no page follows. */
            last: boolean;
            /**
             * Format: int64
             * @description The number of this page, from 0.
             */
            page: number;
            /**
             * Format: int64
             * @description How many records a page has at most.
             */
            size: number;
            /**
             * Format: int64
             * @description How many records there are: exact up to 100,000, of the audit log up to 5,000, and that number beyond.
             */
            totalElements: number;
            /**
             * Format: int64
             * @description How many pages they fill.
             */
            totalPages: number;
        };
        /** @description One page of records. */
        PageBleDeliveryResponse: {
            /** @description The records of this page. */
            content: components["schemas"]["BleDeliveryResponse"][];
            /** @description Whether this is the first page. */
            first: boolean;
            /** @description Whether no page follows. */
            last: boolean;
            /**
             * Format: int64
             * @description The number of this page, from 0.
             */
            page: number;
            /**
             * Format: int64
             * @description How many records a page has at most.
             */
            size: number;
            /**
             * Format: int64
             * @description How many records there are: exact up to 100,000, of the audit log up to 5,000, and that number beyond.
             */
            totalElements: number;
            /**
             * Format: int64
             * @description How many pages they fill.
             */
            totalPages: number;
        };
        /** @description One page of records. */
        PageBleEventResponse: {
            /** @description The records of this page. */
            content: components["schemas"]["BleEventResponse"][];
            /** @description Whether this is the first page. */
            first: boolean;
            /** @description Whether no page follows. */
            last: boolean;
            /**
             * Format: int64
             * @description The number of this page, from 0.
             */
            page: number;
            /**
             * Format: int64
             * @description How many records a page has at most.
             */
            size: number;
            /**
             * Format: int64
             * @description How many records there are: exact up to 100,000, of the audit log up to 5,000, and that number beyond.
             */
            totalElements: number;
            /**
             * Format: int64
             * @description How many pages they fill.
             */
            totalPages: number;
        };
        /** @description One page of records. */
        PageHubJobEventResponse: {
            /** @description The records of this page. */
            content: components["schemas"]["HubJobEventResponse"][];
            /** @description Whether this is the first page. */
            first: boolean;
            /** @description Whether no page follows. */
            last: boolean;
            /**
             * Format: int64
             * @description The number of this page, from 0.
             */
            page: number;
            /**
             * Format: int64
             * @description How many records a page has at most.
             */
            size: number;
            /**
             * Format: int64
             * @description How many records there are: exact up to 100,000, of the audit log up to 5,000, and that number beyond.
             */
            totalElements: number;
            /**
             * Format: int64
             * @description How many pages they fill.
             */
            totalPages: number;
        };
        /** @description One page of records. */
        PageHubJobResponse: {
            /** @description The records of this page. */
            content: components["schemas"]["HubJobResponse"][];
            /** @description Whether this is the first page. */
            first: boolean;
            /** @description Whether no page follows. */
            last: boolean;
            /**
             * Format: int64
             * @description The number of this page, from 0.
             */
            page: number;
            /**
             * Format: int64
             * @description How many records a page has at most.
             */
            size: number;
            /**
             * Format: int64
             * @description How many records there are: exact up to 100,000, of the audit log up to 5,000, and that number beyond.
             */
            totalElements: number;
            /**
             * Format: int64
             * @description How many pages they fill.
             */
            totalPages: number;
        };
        /** @description One page of records. */
        PageHubLogResponse: {
            /** @description The records of this page. */
            content: components["schemas"]["HubLogResponse"][];
            /** @description Whether this is the first page. */
            first: boolean;
            /** @description Whether no page follows. */
            last: boolean;
            /**
             * Format: int64
             * @description The number of this page, from 0.
             */
            page: number;
            /**
             * Format: int64
             * @description How many records a page has at most.
             */
            size: number;
            /**
             * Format: int64
             * @description How many records there are: exact up to 100,000, of the audit log up to 5,000, and that number beyond.
             */
            totalElements: number;
            /**
             * Format: int64
             * @description How many pages they fill.
             */
            totalPages: number;
        };
        /** @description One page of records. */
        PageHubTelemetryResponse: {
            /** @description The records of this page. */
            content: components["schemas"]["HubTelemetryResponse"][];
            /** @description Whether this is the first page. */
            first: boolean;
            /** @description Whether no page follows. */
            last: boolean;
            /**
             * Format: int64
             * @description The number of this page, from 0.
             */
            page: number;
            /**
             * Format: int64
             * @description How many records a page has at most.
             */
            size: number;
            /**
             * Format: int64
             * @description How many records there are: exact up to 100,000, of the audit log up to 5,000, and that number beyond.
             */
            totalElements: number;
            /**
             * Format: int64
             * @description How many pages they fill.
             */
            totalPages: number;
        };
        /** @description Whose hub it is going to be. */
        PairingCodeRequest: {
            /**
             * Format: uuid
             * @description The supplier of the hub, which has to allow that people pair hubs themselves.
             */
            supplierUuid: string;
        };
        /** @description A code that the caller has. */
        PairingOfferRequest: {
            /** @description The claim code, in any spelling. */
            claimCode: string;
        };
        /** @description What a claim code offers. */
        PairingOfferResponse: {
            /**
             * Format: date-time
             * @description Until when a hub can use the code.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt: string;
            /** @description The label that the hub will have, if the code says so. */
            hubIdentifier?: string | null;
            /**
             * Format: uuid
             * @description The hub that has used it; null while none has.
             */
            hubUuid?: string | null;
            /** @description The name of the supplier. */
            supplierName: string;
            /**
             * Format: uuid
             * @description The supplier that the hub will belong to.
             */
            supplierUuid: string;
        };
        /** @description A member of a project. */
        PartnerMember: {
            /**
             * Format: uuid
             * @description The persona; each once.
             */
            personaUuid: string;
            /** @description The role. With `OWNER`, `ADMIN`, `OPERATOR`, `EDITOR` and `MEMBER` the member may change what takes part in the project; with any other role the member sees it. */
            role: string;
        };
        /** @description A project of the partner. */
        PartnerProject: {
            /** @description The id that the partner gave it. */
            id: string;
            /** @description All of its members; required unless it is deleted. */
            members?: components["schemas"]["PartnerMember"][] | null;
            /** @description Its name; required unless it is deleted. */
            name?: string | null;
        };
        /** @description All of a project as it is now. */
        PartnerProjectRequest: {
            /** @description Whether it is gone; false when absent. */
            deleted?: boolean | null;
            /**
             * Format: date-time
             * @description When the partner changed it. Of several messages the one with the latest time counts. Once a project had it, its messages need it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            occurredAt?: string | null;
            /** @description The project. */
            project: components["schemas"]["PartnerProject"];
        };
        /** @description What became of a message. */
        PartnerProjectResponse: {
            /** @description False if something later was told before, so that the message changed nothing. */
            applied: boolean;
            /** @description The project. */
            projectId: string;
        };
        /** @description The permission cache of this replica. The counts start with the process. */
        PermissionCacheResponse: {
            /**
             * Format: uint64
             * @description Cached entries.
             */
            entries: number;
            /**
             * Format: uint64
             * @description Lookups that found an entry.
             */
            hits: number;
            /**
             * Format: uint64
             * @description How often the whole cache was cleared.
             */
            invalidations: number;
            /**
             * Format: uint64
             * @description How long an entry is valid, in milliseconds.
             */
            leaseMillis: number;
            /**
             * Format: uint64
             * @description Lookups that read the database.
             */
            misses: number;
        };
        /** @description An e-mail address to invite, or a persona to add at once: exactly one of them. */
        PersonaInviteRequest: {
            /**
             * Format: email
             * @description Receives a mail with a token, which is valid for seven days.
             */
            email?: string | null;
            /**
             * Format: uuid
             * @description The default persona of a person, or the one that the person had in this tenant.
             */
            personaUuid?: string | null;
            /** @description VIEWER when absent. Only an OWNER may grant OWNER. */
            role?: components["schemas"]["Role"] | null;
        };
        /** @description A pipeline. */
        PipelineConfigResponse: {
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description The id of the last event up to which everything is settled, which is its time of receipt in microseconds since 1970.
             */
            cursor: number;
            /** @description How it is sent. */
            delivery: components["schemas"]["PipelineDelivery"];
            /** @description A text for people. */
            description?: string | null;
            /** @description Where what is left goes. Of `auth`, what is secret is left out. */
            destination: {
                [key: string]: unknown;
            };
            /** @description Whether it was not paused. */
            enabled: boolean;
            /**
             * Format: date-time
             * @description Since when deliveries fail; null while they do not.
             * @example 2026-01-31T08:00:00.000000Z
             */
            failingSince?: string | null;
            /**
             * Format: int64
             * @description Events of the log after the cursor, whether it takes them or not, counted up to 100,000.
             */
            lagEvents: number;
            /**
             * Format: int64
             * @description The age of the oldest of them in seconds; 0 if there is none.
             */
            lagSeconds: number;
            /**
             * Format: date-time
             * @description When a receiver last took a message; null if none has.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastDeliveredAt?: string | null;
            /** @description What failed last, for people; null while nothing fails. */
            lastError?: string | null;
            /** @description Events that were deleted before they were sent, as their retention was over; null for none. */
            lost?: components["schemas"]["LostRange"] | null;
            /** @description A name for people. */
            name: string;
            /**
             * Format: date-time
             * @description When its receiver is tried again; null unless the status is OPEN_CIRCUIT.
             * @example 2026-01-31T08:00:00.000000Z
             */
            nextAttemptAt?: string | null;
            /**
             * Format: uuid
             * @description The pipeline.
             */
            pipelineUuid: string;
            /**
             * Format: date-time
             * @description Until when the signing secret before this one signs as well; null if none does.
             * @example 2026-01-31T08:00:00.000000Z
             */
            previousSecretUntil?: string | null;
            /**
             * Format: int64
             * @description Raised with each change of the definition.
             */
            revision: number;
            /** @description The end of the signing secret; null for a destination whose messages are not signed. */
            secretHint?: string | null;
            /** @description The signing secret, whole: where it was made, and never again. */
            signingSecret?: string | null;
            /** @description Which events it takes. */
            source: components["schemas"]["PipelineSource"];
            /** @description Whether it works. */
            status: components["schemas"]["PipelineStatus"];
            /** @description What is done with each event, in order. */
            steps: unknown;
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
        };
        /** @description How messages are sent. */
        PipelineDelivery: {
            /**
             * Format: uint
             * @description Events of one message at most. Of 1, a message is the event itself; of more, a list.
             */
            batchEvents: number;
            /**
             * Format: uint64
             * @description How long an event waits for others.
             */
            batchMillis: number;
            /**
             * Format: uint
             * @description Messages under way at once.
             */
            concurrency: number;
            /** @description Whether a message waits for the one before it. */
            ordered: boolean;
            /**
             * Format: uint64
             * @description How long a receiver may take to answer.
             */
            timeoutSeconds: number;
        };
        /** @description The pipelines of a tenant. */
        PipelineNumbers: {
            /**
             * Format: int64
             * @description Those that are enabled.
             */
            enabled: number;
            /**
             * Format: int64
             * @description Those that do not deliver.
             */
            failing: number;
            /**
             * Format: int64
             * @description All of them.
             */
            total: number;
        };
        /**
         * @description How far a position in the log is.
         *
         *     - `RUNNING`: It is worked on, or waits for its turn.
         *     - `OPEN_CIRCUIT`: The receiver fails; it is tried again now and then.
         *     - `SUSPENDED`: It waits for somebody to resume the pipeline.
         *     - `DISABLED`: The pipeline was paused.
         *     - `FINISHED`: It is done.
         *     - `CANCELLED`: It was cancelled.
         * @enum {string}
         */
        PipelineReplayStatus: "RUNNING" | "OPEN_CIRCUIT" | "SUSPENDED" | "DISABLED" | "FINISHED" | "CANCELLED";
        /** @description Which events a pipeline takes. A list that is empty selects everything. */
        PipelineSource: {
            /** @description Events that hubs received to which a bundle has bound the pipeline, besides those in `hubUuids`, and no others. A pipeline with `hubUuids` takes these as well. */
            boundHubs?: boolean;
            /** @description Events of these devices. */
            deviceInstanceIds?: number[];
            /** @description Events of devices of these models. */
            deviceUuids?: string[];
            /** @description Events that these hubs received. */
            hubUuids?: string[];
            /** @description Whether a model of the tenant's catalog has to be known, or must not be. */
            known?: boolean | null;
            /** @description Events with a measurement of one of these quantities. */
            quantities?: string[];
        };
        /**
         * @description Whether a pipeline works.
         *
         *     - `RUNNING`: It delivers what there is.
         *     - `DISABLED`: It was paused.
         *     - `OPEN_CIRCUIT`: Its receiver fails; it is tried again now and then.
         *     - `SUSPENDED`: Its receiver has failed for too long, or refuses for good; it waits for somebody to resume it.
         * @enum {string}
         */
        PipelineStatus: "RUNNING" | "DISABLED" | "OPEN_CIRCUIT" | "SUSPENDED";
        /** @description What came back. */
        PipelineTestAnswer: {
            /** @description The first KiB of its answer; null if there was none. */
            body?: string | null;
            /** @description Whether the receiver took it. */
            delivered: boolean;
            /**
             * Format: uint64
             * @description How long it took.
             */
            durationMillis: number;
            /** @description Why it was not delivered; null if it was. */
            error?: string | null;
            /**
             * Format: uint16
             * @description The status that it answered; null if it answered none.
             */
            status?: number | null;
        };
        /** @description What became of one event. */
        PipelineTestEvent: {
            /** @description The event before the steps. */
            input: {
                [key: string]: unknown;
            };
            /** @description The event after the steps, or the text of a template; a list if a script made several. Absent if nothing is left. */
            output?: unknown;
            /** @description The message, without secrets and signatures. */
            request?: components["schemas"]["PipelineTestMessage"] | null;
            /** @description With `send`: what came back. */
            response?: components["schemas"]["PipelineTestAnswer"] | null;
            /** @description Whether the source takes it. If not, nothing else was tried. */
            selected: boolean;
            /** @description The steps, as far as the event got. */
            steps: components["schemas"]["StepTrace"][];
        };
        /** @description A message; of a protocol other than HTTP, the equivalent. */
        PipelineTestMessage: {
            /** @description The content. */
            body: string;
            /** @description Why it would not be sent. */
            error?: string | null;
            /** @description What goes with it. */
            headers: {
                [key: string]: string;
            };
            /** @description The method, or what is done. */
            method: string;
            /** @description Where to. */
            url: string;
        };
        /** @description What to try: the saved pipeline, but for the parts that are given, on some events. A member that is not known is an error. */
        PipelineTestRequest: {
            /** @description Stored events. */
            bleEventIds?: number[] | null;
            /** @description A destination in place of the saved one. */
            destination?: {
                [key: string]: unknown;
            } | null;
            /** @description An event in the form of `BleEventResponse`, of which any member may be left out. */
            event?: {
                [key: string]: unknown;
            } | null;
            /**
             * Format: int64
             * @description So many of the last events that the source takes; 1 when no events are chosen.
             */
            last?: number | null;
            /** @description Whether what is made is also sent; false when absent. */
            send?: boolean | null;
            /** @description A source in place of the saved one. */
            source?: components["schemas"]["SourceRequest"] | null;
            /** @description Steps in place of the saved ones. */
            steps?: {
                [key: string]: unknown;
            }[] | null;
        };
        /** @description What became of the events. */
        PipelineTestResult: {
            /** @description The events in their order. */
            results: components["schemas"]["PipelineTestEvent"][];
        };
        /** @description A hub of any tenant. */
        PlatformHubResponse: {
            /** @description The version of its agent, as last reported. */
            agentVersion?: string | null;
            /**
             * Format: date-time
             * @description The last claim.
             * @example 2026-01-31T08:00:00.000000Z
             */
            claimedAt: string;
            /**
             * Format: date-time
             * @description The first claim.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description The hardware identity of the hub. */
            deviceInstanceId: string;
            /** @description The host name of the machine. */
            hostname?: string | null;
            /** @description The label of the hub, for people. */
            hubIdentifier?: string | null;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: date-time
             * @description The last upload, report, claim or refresh.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastSeenAt?: string | null;
            /**
             * Format: date-time
             * @description The last telemetry.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastTelemetryAt?: string | null;
            /** @description Whether telemetry arrived within the last 10 minutes. */
            online: boolean;
            /**
             * Format: date-time
             * @description When the tenant released it, with its hardware; null when it did not. Its records are still the tenant's.
             * @example 2026-01-31T08:00:00.000000Z
             */
            releasedAt?: string | null;
            /** @description The status of the hub. */
            status: components["schemas"]["HubStatus"];
            /**
             * Format: uuid
             * @description The tenant that the hub belongs to.
             */
            tenantUuid: string;
        };
        /** @description A tenant as the platform sees it, with its limits. */
        PlatformTenantDetailResponse: {
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When it was deleted; null when it was not.
             * @example 2026-01-31T08:00:00.000000Z
             */
            deletedAt?: string | null;
            /** @description Its own limits. */
            limits: components["schemas"]["TenantLimits"];
            /**
             * Format: int64
             * @description How many members it has.
             */
            members: number;
            /** @description Its name. */
            name: string;
            /**
             * Format: uuid
             * @description The tenant.
             */
            tenantUuid: string;
        };
        /** @description A tenant as the platform sees it. */
        PlatformTenantResponse: {
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When it was deleted; null when it was not.
             * @example 2026-01-31T08:00:00.000000Z
             */
            deletedAt?: string | null;
            /**
             * Format: int64
             * @description How many members it has.
             */
            members: number;
            /** @description Its name. */
            name: string;
            /**
             * Format: uuid
             * @description The tenant.
             */
            tenantUuid: string;
        };
        /** @description A point of the series. */
        Point: {
            /**
             * Format: date-time
             * @description When it begins; it lasts until the next one.
             * @example 2026-01-31T08:00:00.000000Z
             */
            at: string;
            /**
             * Format: int64
             * @description The events of it.
             */
            events: number;
        };
        /**
         * @description Which hubs a policy applies to. The most specific policy wins.
         *
         *     - `GLOBAL`: All hubs.
         *     - `UNIT`: All hubs of a tenant.
         *     - `HUB`: One hub.
         * @enum {string}
         */
        PolicyScope: "GLOBAL" | "UNIT" | "HUB";
        /** @description A failure. `message` is for a person, `code` for a program. */
        Problem: {
            /** @description Stable, in SCREAMING_SNAKE_CASE. */
            code: string;
            /** @description The fields that are not valid, where the content of the request is at fault. */
            errors?: components["schemas"]["FieldError"][];
            /** @description One plain sentence that says what is wrong and, where it helps, what to do next. */
            message: string;
            /** @description The same value as the `X-Request-Id` header, which the log of the service has too. */
            requestId: string;
        };
        /**
         * @description How far the service has processed a BLE event.
         *
         *     - `RECEIVED`: Stored as it came: the tenant has no device models.
         *     - `MATCHED`: Its device model is known.
         *     - `UNMATCHED`: No device model fits.
         *     - `DECODED`: Its payload is decoded.
         *     - `FAILED`: Its payload could not be decoded.
         * @enum {string}
         */
        ProcessingStatus: "RECEIVED" | "MATCHED" | "UNMATCHED" | "DECODED" | "FAILED";
        /** @description A device that takes part in a project. */
        ProjectDeviceResponse: {
            /** @description Where the device is in its life. */
            activationStatus: components["schemas"]["ActivationStatus"];
            /**
             * Format: date-time
             * @description When it was added.
             * @example 2026-01-31T08:00:00.000000Z
             */
            addedAt: string;
            /**
             * Format: int64
             * @description The id of the device.
             */
            deviceInstanceId: number;
            /** @description The name of the model. */
            deviceName: string;
            /**
             * Format: uuid
             * @description The model of the device.
             */
            deviceUuid: string;
            /** @description A name for people. */
            name?: string | null;
            /**
             * Format: uuid
             * @description The tenant that it belongs to.
             */
            tenantUuid: string;
        };
        /** @description A tenant that takes part in a project. */
        ProjectTenantResponse: {
            /**
             * Format: int64
             * @description How many of its devices take part.
             */
            deviceCount: number;
            /**
             * Format: date-time
             * @description When it joined.
             * @example 2026-01-31T08:00:00.000000Z
             */
            joinedAt: string;
            /** @description Its name. */
            name: string;
            /**
             * Format: uuid
             * @description The tenant.
             */
            tenantUuid: string;
        };
        /** @description What a protocol reads of the frame of one test. */
        ProtocolTestOutcome: {
            /** @description The quantities that are not as the test expects. */
            differing: string[];
            /** @description Whether all is as the test expects. */
            passed: boolean;
            /** @description Why nothing was read. */
            problem?: string | null;
            /** @description The values by quantity; one of several of a quantity as `quantity[index]`. */
            values: {
                [key: string]: unknown;
            };
        };
        /** @description What read an event. */
        ProtocolUsedResponse: {
            /**
             * Format: int64
             * @description The protocol.
             */
            deviceProtocolId: number;
            /**
             * Format: int64
             * @description Its revision.
             */
            revision: number;
        };
        /** @description An invitation as the holder of its token sees it. */
        PublicInvitationResponse: {
            /** @description Who is invited, masked: enough to recognise the address by. */
            email: string;
            /**
             * Format: date-time
             * @description When it expires.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt: string;
            /** @description The role that the person will have. */
            role: components["schemas"]["Role"];
            /** @description PENDING or ACCEPTED; any other is answered with 410. */
            status: components["schemas"]["InvitationStatus"];
            /** @description The name of the tenant. */
            tenantName: string;
        };
        /** @description One key of the JSON Web Key Set (RFC 7517). */
        PublicKey: {
            /** @description The algorithm: `ES256`. */
            alg: string;
            /** @description The curve: `P-256`. */
            crv: string;
            /** @description The id of the key, which tokens name. */
            kid: string;
            /** @description The type of the key: `EC`. */
            kty: string;
            /** @description What the key is for: `sig`, signatures. */
            use: string;
            /** @description The x coordinate, in base64url. */
            x: string;
            /** @description The y coordinate, in base64url. */
            y: string;
        };
        /** @description What data is used for. */
        Purpose: {
            /**
             * Format: int64
             * @description For how many days BLE events are kept when a person grants it and sets nothing else; of several purposes the shortest counts.
             */
            defaultRetentionDays?: number | null;
            /** @description What grants name it by. */
            key: string;
            /** @description Whether nobody can consent without it. */
            required: boolean;
            /** @description What people read. */
            title: string;
        };
        /** @description What can be measured. */
        QuantityResponse: {
            /** @description A text for people. */
            description: string;
            /** @description What its values usually are. */
            kind: components["schemas"]["MetricKind"];
            /**
             * Format: double
             * @description The greatest value that makes sense; null without one.
             */
            max?: number | null;
            /**
             * Format: double
             * @description The least value that makes sense, in its unit; null without one.
             */
            min?: number | null;
            /** @description Its name, such as `temperature`. */
            name: string;
            /** @description Its unit in SenML (RFC 8428); null for what has none. */
            unit?: string | null;
        };
        /** @description One of the receptions of a frame. */
        ReceptionResponse: {
            /**
             * Format: int64
             * @description The event.
             */
            bleEventId: number;
            /**
             * Format: uuid
             * @description The hub that received it.
             */
            hubUuid: string;
            /**
             * Format: date-time
             * @description When the service received it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            receivedAt: string;
            /**
             * Format: int64
             * @description How strongly, in dBm; of a window, the mean. Null if it is not known.
             */
            rssiDbm?: number | null;
        };
        /** @description The refresh token of a login. */
        RefreshRequest: {
            /** @description The refresh token that was returned last. */
            refreshToken: string;
        };
        /** @description An account to create. */
        RegisterRequest: {
            /**
             * Format: email
             * @description The e-mail address, read without regard to case.
             */
            email: string;
            /** @description The name to show to others. */
            nickname?: string | null;
            /** @description The password: 8 to 200 characters. */
            password: string;
        };
        /**
         * @description Who may create an account.
         *
         *     - `OPEN`: Anybody.
         *     - `INVITED`: Whoever was invited to a tenant.
         *     - `CLOSED`: Nobody.
         * @enum {string}
         */
        Registration: "OPEN" | "INVITED" | "CLOSED";
        /** @description An event in the outbox. */
        RegistrationEventResponse: {
            /**
             * Format: int64
             * @description How often it was tried since it was written or put back.
             */
            attempts: number;
            /**
             * Format: date-time
             * @description When it was written.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When it was delivered; null unless DELIVERED.
             * @example 2026-01-31T08:00:00.000000Z
             */
            deliveredAt?: string | null;
            /** @description What happened. */
            eventType: components["schemas"]["EventType"];
            /**
             * Format: int64
             * @description The id of the event.
             */
            id: number;
            /** @description Why the last try failed. */
            lastError?: string | null;
            /**
             * Format: date-time
             * @description When it is tried next; null unless PENDING.
             * @example 2026-01-31T08:00:00.000000Z
             */
            nextAttemptAt?: string | null;
            /** @description What is sent. */
            payload: Record<string, never>;
            /** @description Whether it is still to be delivered. */
            status: components["schemas"]["Status"];
            /**
             * Format: uuid
             * @description The tenant, whose system is told.
             */
            tenantUuid: string;
        };
        /** @description An event, or a device, that was not stored. */
        RejectedEvent: {
            /**
             * Format: int64
             * @description Its position in the upload, from 0.
             */
            index: number;
            /** @description What is wrong with it. */
            message: string;
        };
        /**
         * @description The purpose of a platform release.
         *
         *     - `HUB_AGENT`: The program that hubs update themselves to.
         *     - `INSTALLER`: What a person runs to turn a machine into a hub.
         *     - `HUB_OS`: An image of a whole system.
         * @enum {string}
         */
        ReleaseCategory: "HUB_AGENT" | "INSTALLER" | "HUB_OS";
        /** @description A file that was stored. */
        ReleaseFileResponse: {
            /**
             * Format: uuid
             * @description The release.
             */
            releaseUuid: string;
            /** @description The SHA-256 digest of the file, in lower-case hex. */
            sha256: string;
            /**
             * Format: uint64
             * @description The size of the file.
             */
            sizeBytes: number;
            /** @description The status of the release now. */
            status: components["schemas"]["ReleaseStatus"];
        };
        /** @description `GET /v1/apps/{appReleaseUuid}/manifest` and `GET /v1/agent/releases/latest`: a release, and where its file is for the next minutes. */
        ReleaseOffer: {
            /**
             * Format: uuid
             * @description The app, of the release of an app.
             */
            appUuid?: string | null;
            /** @description Where the file is: a path of this service, or a URL of another store. It accepts range requests and needs no credential. */
            downloadUrl: string;
            /**
             * Format: date-time
             * @description When the URL expires; ask again for another.
             * @example 2026-01-31T08:00:00.000000Z
             */
            downloadUrlExpiresAt: string;
            /** @description The manifest, byte for byte as it was signed. */
            manifest: string;
            /**
             * Format: uuid
             * @description The release.
             */
            releaseUuid: string;
            /** @description A minisign signature of `manifest`. */
            signature: string;
            /** @description The version of the release. */
            version: string;
        };
        /**
         * @description Whether the file of a release is available.
         *
         *     - `AWAITING_FILE`: Its file has not been uploaded; it is offered to nobody.
         *     - `READY`: Its file is stored.
         * @enum {string}
         */
        ReleaseStatus: "AWAITING_FILE" | "READY";
        /** @description The devices to take out: all of them, or none. */
        RemoveDevicesRequest: {
            /** @description Devices of the project. */
            deviceInstanceIds: number[];
        };
        /**
         * @description Which of the events a replay sends.
         *
         *     - `LIVE`: All that the pipeline takes.
         *     - `DEAD_LETTERS_ONLY`: Those that are in a dead letter.
         * @enum {string}
         */
        ReplayDestination: "LIVE" | "DEAD_LETTERS_ONLY";
        /** @description Events to send once more. */
        ReplayRequest: {
            /** @description Which of them; LIVE when absent. */
            destination?: components["schemas"]["ReplayDestination"] | null;
            /**
             * Format: date-time
             * @description Events received at this time or later.
             * @example 2026-01-31T08:00:00.000000Z
             */
            from: string;
            /**
             * Format: date-time
             * @description Events received before this time, which is after `from`.
             * @example 2026-01-31T08:00:00.000000Z
             */
            to: string;
        };
        /** @description A replay. */
        ReplayResponse: {
            /**
             * Format: date-time
             * @description When it was asked for.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description The id of the last event up to which everything is settled.
             */
            cursor: number;
            /** @description Which of them. */
            destination: components["schemas"]["ReplayDestination"];
            /**
             * Format: int64
             * @description Events that were sent.
             */
            events: number;
            /**
             * Format: date-time
             * @description Since when its deliveries fail; null while they do not.
             * @example 2026-01-31T08:00:00.000000Z
             */
            failingSince?: string | null;
            /**
             * Format: date-time
             * @description When it ended; null until then.
             * @example 2026-01-31T08:00:00.000000Z
             */
            finishedAt?: string | null;
            /**
             * Format: date-time
             * @description Events received at this time or later are sent.
             * @example 2026-01-31T08:00:00.000000Z
             */
            from: string;
            /** @description What failed last, for people; null while nothing fails. */
            lastError?: string | null;
            /**
             * Format: uuid
             * @description The replay.
             */
            replayUuid: string;
            /** @description How far it is. */
            status: components["schemas"]["PipelineReplayStatus"];
            /**
             * Format: date-time
             * @description Events received before this time are sent; not after the replay was asked for.
             * @example 2026-01-31T08:00:00.000000Z
             */
            to: string;
        };
        /** @description A replay was accepted. */
        ReplayStartedResponse: {
            /**
             * Format: uuid
             * @description The replay.
             */
            replayUuid: string;
        };
        /**
         * @description Why events are read again.
         *
         *     - `OPERATOR`: Somebody asked for it.
         *     - `BIND_KEY`: A device has got a new bind key: what is stored of it and could not be decoded is read.
         * @enum {string}
         */
        ReprocessCause: "OPERATOR" | "BIND_KEY";
        /** @description An event that changes. */
        ReprocessExampleResponse: {
            /** @description As it is read now. */
            after: components["schemas"]["ReprocessSideResponse"];
            /** @description As it is stored. */
            before: components["schemas"]["ReprocessSideResponse"];
            /**
             * Format: int64
             * @description The event.
             */
            bleEventId: number;
        };
        /** @description What would change. */
        ReprocessPreviewResponse: {
            /**
             * Format: int64
             * @description Those of them that are read otherwise than they are stored.
             */
            changed: number;
            /** @description Whether all events of the range were read. A dry run reads 100,000 events, for 5 seconds. */
            complete: boolean;
            /**
             * Format: int64
             * @description Events that were read again.
             */
            events: number;
            /** @description The first events that change. */
            examples: components["schemas"]["ReprocessExampleResponse"][];
            /**
             * Format: int64
             * @description Those that are decoded now and were not.
             */
            newlyDecoded: number;
            /**
             * Format: int64
             * @description Those that were decoded and are not now.
             */
            noLongerDecoded: number;
            /**
             * Format: date-time
             * @description Events received before this time were read. Where `complete` is false, another dry run with it as `from` reads on.
             * @example 2026-01-31T08:00:00.000000Z
             */
            readTo: string;
        };
        /** @description Which events to read again. */
        ReprocessRequest: {
            /**
             * Format: int64
             * @description Only events that are of this device, as stored or as read now.
             */
            deviceInstanceId?: number | null;
            /**
             * Format: uuid
             * @description Only events that are of this model, as stored or as read now.
             */
            deviceUuid?: string | null;
            /** @description Whether only to say what would change; true when absent. */
            dryRun?: boolean | null;
            /**
             * Format: date-time
             * @description Events received at this time or later.
             * @example 2026-01-31T08:00:00.000000Z
             */
            from: string;
            /**
             * Format: date-time
             * @description Events received before this time, which is after `from`.
             * @example 2026-01-31T08:00:00.000000Z
             */
            to: string;
        };
        /** @description A run. */
        ReprocessResponse: {
            /** @description Why it was begun. */
            cause: components["schemas"]["ReprocessCause"];
            /**
             * Format: int64
             * @description Those of them that were written anew.
             */
            changed: number;
            /**
             * Format: date-time
             * @description When it was asked for.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description Only events of this device; null for all.
             */
            deviceInstanceId?: number | null;
            /**
             * Format: uuid
             * @description Only events of this model; null for all.
             */
            deviceUuid?: string | null;
            /** @description Why it was given up; null otherwise. */
            error?: string | null;
            /**
             * Format: int64
             * @description Events that were read again.
             */
            events: number;
            /**
             * Format: date-time
             * @description When it ended; null until then.
             * @example 2026-01-31T08:00:00.000000Z
             */
            finishedAt?: string | null;
            /**
             * Format: date-time
             * @description Events received at this time or later are read.
             * @example 2026-01-31T08:00:00.000000Z
             */
            from: string;
            /**
             * Format: int64
             * @description Those that are decoded now and were not.
             */
            newlyDecoded: number;
            /**
             * Format: int64
             * @description Those that were decoded and are not now.
             */
            noLongerDecoded: number;
            /**
             * Format: date-time
             * @description Events received before this time are done.
             * @example 2026-01-31T08:00:00.000000Z
             */
            readTo: string;
            /**
             * Format: date-time
             * @description When it began; null while it waits.
             * @example 2026-01-31T08:00:00.000000Z
             */
            startedAt?: string | null;
            /** @description How far it is. */
            state: components["schemas"]["ReprocessState"];
            /**
             * Format: uuid
             * @description The run.
             */
            taskId: string;
            /**
             * Format: date-time
             * @description Events received before this time are read.
             * @example 2026-01-31T08:00:00.000000Z
             */
            to: string;
        };
        /** @description What is known of an event. */
        ReprocessSideResponse: {
            /**
             * Format: int64
             * @description The device; null if it is not known.
             */
            deviceInstanceId?: number | null;
            /**
             * Format: uuid
             * @description The model of the device that sent it; null if it is not known.
             */
            deviceUuid?: string | null;
            /** @description The values that are read from it. */
            measurements: components["schemas"]["MeasurementResponse"][];
            /** @description How far it is processed. */
            processingStatus: components["schemas"]["ProcessingStatus"];
        };
        /**
         * @description How far a run is.
         *
         *     - `QUEUED`: It waits.
         *     - `RUNNING`: It is under way.
         *     - `SUCCEEDED`: It is done.
         *     - `FAILED`: It was given up.
         * @enum {string}
         */
        ReprocessState: "QUEUED" | "RUNNING" | "SUCCEEDED" | "FAILED";
        /** @description A run was accepted. */
        ReprocessTaskResponse: {
            /**
             * Format: uuid
             * @description Its task: `GET /tenant/ble/reprocess/{taskId}` shows it.
             */
            taskId: string;
        };
        /** @description A new password, and the token that allows it. */
        ResetPasswordRequest: {
            /** @description The password to set: 8 to 200 characters. */
            newPassword: string;
            /** @description The token from the mail. */
            token: string;
        };
        /** @description Where a pipeline goes on. */
        ResumeRequest: {
            /** @description `CURSOR`: where it stopped; `NOW`: with the events from now on; or the time of receipt of the first event. CURSOR when absent. */
            from?: string | null;
        };
        /** @description For how many days records of each kind are kept. What is absent or null is the service's default, which is also the maximum. */
        RetentionDays: {
            /**
             * Format: int64
             * @description The audit log.
             */
            audit?: number | null;
            /**
             * Format: int64
             * @description BLE events.
             */
            bleEvents?: number | null;
            /**
             * Format: int64
             * @description Deliveries of pipelines.
             */
            deliveries?: number | null;
            /**
             * Format: int64
             * @description Events of jobs.
             */
            jobEvents?: number | null;
            /**
             * Format: int64
             * @description Logs of hubs.
             */
            logs?: number | null;
            /**
             * Format: int64
             * @description Telemetry.
             */
            telemetry?: number | null;
        };
        /** @description For how long a person's events are kept. */
        RetentionSettingResponse: {
            /**
             * Format: int64
             * @description The id of the consent.
             */
            consentId: number;
            /**
             * Format: int64
             * @description How many BLE events were deleted because of it.
             */
            deletedEvents: number;
            /**
             * Format: date-time
             * @description Since when that holds.
             * @example 2026-01-31T08:00:00.000000Z
             */
            effectiveFrom?: string | null;
            /**
             * Format: int64
             * @description In days; null for as long as the supplier keeps them.
             */
            retentionDays?: number | null;
        };
        /** @description For how long a person wants their events to be kept. */
        RetentionUpdateRequest: {
            /**
             * Format: int64
             * @description In days.
             */
            retentionDays: number;
        };
        /** @description Which dead letters are delivered again. */
        RetryRequest: {
            /** @description The dead letters; all of the pipeline when absent. Ids that are not known are left out. */
            dlqIds?: number[] | null;
        };
        /** @description What is delivered again. */
        RetryResponse: {
            /**
             * Format: uint64
             * @description Dead letters that wait to be delivered again now.
             */
            retrying: number;
        };
        /**
         * @description The revision with which a dead letter is sent again.
         *
         *     - `original`: The one that made it.
         *     - `current`: The one in force.
         * @enum {string}
         */
        RetryRevision: "original" | "current";
        /**
         * @description The role of a member in a tenant.
         *
         *     - `VIEWER`: May read.
         *     - `EDITOR`: May also write.
         *     - `OPERATOR`: May also run jobs, block and delegate.
         *     - `ADMIN`: May also manage members, keys and secrets.
         *     - `OWNER`: May also transfer and delete the tenant, and grant OWNER.
         * @enum {string}
         */
        Role: "VIEWER" | "EDITOR" | "OPERATOR" | "ADMIN" | "OWNER";
        /** @description How gradually a release is rolled out. */
        RolloutRequest: {
            /**
             * Format: int64
             * @description A rollout halts when more than this percentage of the hubs that began fail or fall silent; 5 when absent.
             */
            maxFailurePercent?: number | null;
            /**
             * Format: int64
             * @description How many hubs must have finished before a rollout is judged; 5 when absent.
             */
            minFinished?: number | null;
            /**
             * Format: int64
             * @description The percentage of hubs that get a release at first; 100 when absent.
             */
            percent?: number | null;
            /**
             * Format: int64
             * @description A hub that began and reported nothing for this many seconds counts as failed; 3,600 when absent.
             */
            silentAfterSeconds?: number | null;
            /**
             * Format: int64
             * @description Seconds between two steps; 3,600 when absent.
             */
            stepIntervalSeconds?: number | null;
            /**
             * Format: int64
             * @description The percentage that is added with each step; 0 when absent.
             */
            stepPercent?: number | null;
        };
        /**
         * @description The state of a rollout.
         *
         *     - `RUNNING`: Hubs are given the release, as far as it has come.
         *     - `HALTED`: No hub is given it until an operator resumes the rollout.
         *     - `ABORTED`: No hub is given it any more.
         *     - `COMPLETED`: All hubs have finished. A hub that is added later is given the release.
         * @enum {string}
         */
        RolloutState: "RUNNING" | "HALTED" | "ABORTED" | "COMPLETED";
        /** @description How gradually a release is rolled out to the hubs of a policy. */
        RolloutTerms: {
            /**
             * Format: int64
             * @description A rollout halts when more than this percentage of the hubs that began fail or fall silent.
             */
            maxFailurePercent: number;
            /**
             * Format: int64
             * @description How many hubs must have finished before a rollout is judged.
             */
            minFinished: number;
            /**
             * Format: int64
             * @description The percentage of hubs that get a release at first.
             */
            percent: number;
            /**
             * Format: int64
             * @description A hub that began and reported nothing for this many seconds counts as failed.
             */
            silentAfterSeconds: number;
            /**
             * Format: int64
             * @description Seconds between two steps.
             */
            stepIntervalSeconds: number;
            /**
             * Format: int64
             * @description The percentage that is added with each step; 0 for no steps.
             */
            stepPercent: number;
        };
        /**
         * @description What becomes of an advertisement.
         *
         *     - `FORWARD`: It is passed on.
         *     - `DROP`: It is dropped.
         *     - `SAMPLE`: One in `everySeconds` of each device is passed on.
         *     - `WINDOW`: The advertisements of a device are folded into one for each `everySeconds`.
         *     - `ON_CHANGE`: It is passed on when one of `quantities` has changed by its delta.
         * @enum {string}
         */
        RouteAction: "FORWARD" | "DROP" | "SAMPLE" | "WINDOW" | "ON_CHANGE";
        /** @description What one layer of the route makes of an event. */
        RouteDecisionResponse: {
            /** @description What becomes of the event. */
            action: components["schemas"]["RouteAction"];
            /**
             * Format: int64
             * @description Of `SAMPLE`, `WINDOW`.
             */
            everySeconds?: number | null;
            /** @description The pipelines that see the event; absent for all. */
            pipelineUuids?: string[] | null;
            /**
             * Format: int64
             * @description The place of the rule that fits among all rules, from 0; null if none of the layer does.
             */
            rule?: number | null;
        };
        /**
         * @description Where a rule is applied.
         *
         *     - `HUB`: On the hub, before anything is stored there.
         *     - `CLOUD`: In the service, before the event is stored.
         * @enum {string}
         */
        RouteLayer: "HUB" | "CLOUD";
        /** @description What a rule fits. All members that are given must hold. */
        RouteMatch: {
            /** @description A company identifier of its manufacturer data: 4 hex digits. */
            companyId?: string | null;
            /**
             * Format: int64
             * @description Advertisements of this registered device.
             */
            deviceInstanceId?: number | null;
            /**
             * Format: uuid
             * @description Advertisements of this model.
             */
            deviceUuid?: string | null;
            /**
             * Format: uuid
             * @description What this hub receives.
             */
            hubUuid?: string | null;
            /** @description Whether the device model is known. */
            known?: boolean | null;
            /**
             * Format: int16
             * @description The weakest signal, in dBm.
             */
            minRssiDbm?: number | null;
            /** @description A service that it advertises, or has data of: 4 hex digits, or a longer UUID in full. */
            serviceUuid?: string | null;
        };
        /** @description One rule of a route. */
        RouteRule: {
            /** @description What becomes of it. */
            action: components["schemas"]["RouteAction"];
            /**
             * Format: int64
             * @description Of `SAMPLE`, `WINDOW`.
             */
            everySeconds?: number | null;
            /** @description Where it is applied. */
            layer: components["schemas"]["RouteLayer"];
            /** @description What it fits; everything if it has no members. */
            match?: components["schemas"]["RouteMatch"];
            /** @description Of a `CLOUD` rule: the pipelines that see the event; all if none is named. */
            pipelineUuids?: string[];
            /** @description Of `ON_CHANGE`: the least change by quantity, in its unit. */
            quantities?: {
                [key: string]: number;
            };
        };
        /** @description An attempt to deliver an event. */
        RunDeliveryResponse: {
            /**
             * Format: int64
             * @description Which attempt it was for this message, from 1.
             */
            attempt: number;
            /**
             * Format: int64
             * @description The attempt.
             */
            deliveryId: number;
            /**
             * Format: int64
             * @description How long it took.
             */
            durationMillis: number;
            /** @description Why it failed, for people; null if it did not. */
            error?: string | null;
            /**
             * Format: uuid
             * @description The pipeline, which may have been deleted since.
             */
            pipelineUuid: string;
            /**
             * Format: int64
             * @description The status that the receiver answered; null if it answered none.
             */
            responseStatus?: number | null;
            /**
             * Format: int64
             * @description The revision that made the message.
             */
            revision: number;
            /**
             * Format: date-time
             * @description When it began.
             * @example 2026-01-31T08:00:00.000000Z
             */
            startedAt: string;
            /** @description What came of it. */
            status: components["schemas"]["DeliveryStatus"];
        };
        /**
         * @description What caused a run.
         *
         *     - `INGEST`: The event was taken in.
         *     - `REPROCESS`: It was read again while it was stored.
         * @enum {string}
         */
        RunTrigger: "INGEST" | "REPROCESS";
        /** @description A correction of a measured quantity. */
        ScanCalibration: {
            /**
             * Format: double
             * @description Added after scaling, in the unit of the quantity.
             */
            offset: number;
            /**
             * Format: double
             * @description A factor.
             */
            scale: number;
        };
        /** @description `GET /v1/hubs/scan-config`. */
        ScanConfig: {
            /** @description Device models, and the registered devices. */
            devices: components["schemas"]["ScanDevice"][];
            /** @description What advertisements of the models are recognised by. */
            identifiers: components["schemas"]["ScanIdentifier"][];
            /** @description Keys of devices whose advertisements this hub has to read. Never logged. */
            keys: components["schemas"]["ScanKeys"][];
            /** @description What hubs do with an advertisement that no rule fits. */
            otherwise: components["schemas"]["Otherwise"];
            /** @description How their payloads are read. */
            protocols: components["schemas"]["ScanProtocol"][];
            /**
             * Format: int64
             * @description Grows with every change, but not with a change of `keys`.
             */
            revision: number;
            /** @description What a hub does with an advertisement: the first rule that fits decides. */
            routes: components["schemas"]["RouteRule"][];
        };
        /** @description A device model, or a registered device if it has a `deviceInstanceId`. */
        ScanDevice: {
            /** @description The public or static address of the device. */
            address?: string | null;
            /** @description What the payload identifies the device by: `{"uuid", "major", "minor"}` or `{"namespace", "instance"}`. */
            beacon?: {
                [key: string]: unknown;
            } | null;
            /** @description By quantity: the value times `scale`, plus `offset`. */
            calibration?: {
                [key: string]: components["schemas"]["ScanCalibration"];
            };
            /**
             * Format: int64
             * @description The registered device.
             */
            deviceInstanceId?: number | null;
            /**
             * Format: int64
             * @description What reads its advertisements; of a device, where its version names another one than its model.
             */
            deviceProtocolId?: number | null;
            /**
             * Format: uuid
             * @description The model.
             */
            deviceUuid: string;
            /**
             * Format: int64
             * @description Seconds between two advertisements that are expected of the model's devices.
             */
            expectedIntervalSeconds?: number | null;
            /** @description The name of the model, or of the device. */
            name?: string | null;
        };
        /** @description Conditions that must all hold of an advertisement of the model. */
        ScanIdentifier: {
            /** @description As in the catalog: `{"kind", "value", "mask"?}`. */
            conditions: {
                [key: string]: unknown;
            }[];
            /**
             * Format: uuid
             * @description The model.
             */
            deviceUuid: string;
            /**
             * Format: int64
             * @description The identifier.
             */
            id: number;
        };
        /** @description Keys of a registered device. It has no `Debug` of its own that would show them. */
        ScanKeys: {
            /** @description 12 or 16 bytes as hex digits. */
            bindKey?: string | null;
            /**
             * Format: int64
             * @description The device.
             */
            deviceInstanceId: number;
            /** @description 16 bytes as hex digits. */
            identityResolvingKey?: string | null;
        };
        /** @description A decoder of the catalog. */
        ScanProtocol: {
            /** @description The name of a built-in decoder, or a definition. */
            definition: {
                [key: string]: unknown;
            };
            /**
             * Format: int64
             * @description The protocol.
             */
            deviceProtocolId: number;
            /** @description `BUILTIN` or `DECLARATIVE`. */
            kind: string;
            /**
             * Format: int64
             * @description It changes with `kind` and `definition`.
             */
            revision: number;
        };
        /** @description The values of a quantity within a bucket. */
        SensorBucketResponse: {
            /**
             * Format: int64
             * @description How many values there are.
             */
            count: number;
            /**
             * Format: date-time
             * @description When the bucket begins; the first one not before `from`.
             * @example 2026-01-31T08:00:00.000000Z
             */
            from: string;
            /** @description The value that was observed last: a number, a text or a boolean. */
            last: number | string | boolean;
            /**
             * Format: double
             * @description The greatest value; null of what is no number.
             */
            max?: number | null;
            /**
             * Format: double
             * @description The mean of the values; null of what is no number.
             */
            mean?: number | null;
            /**
             * Format: double
             * @description The least value; null of what is no number.
             */
            min?: number | null;
            /** @description One of `GET /public/quantities`, or `quantity[index]` of one that occurs more than once. */
            quantity: string;
            /**
             * Format: date-time
             * @description When it ends, not included; the last one not after `to`.
             * @example 2026-01-31T08:00:00.000000Z
             */
            to: string;
            /** @description The unit of the quantity in SenML (RFC 8428); null for what has none. */
            unit?: string | null;
        };
        /** @description The values of one reception, or of a quantity within a bucket where `every` is given. */
        SensorDataResponse: components["schemas"]["SensorItemResponse"] | components["schemas"]["SensorBucketResponse"];
        /** @description What a device measured. */
        SensorItemResponse: {
            /**
             * Format: int64
             * @description The event that has the values.
             */
            bleEventId: number;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: date-time
             * @description When the hub received it, by the clock of the hub; of a window, the last time.
             * @example 2026-01-31T08:00:00.000000Z
             */
            observedAt: string;
            /**
             * Format: date-time
             * @description When the service received it.
             * @example 2026-01-31T08:00:00.000000Z
             */
            receivedAt: string;
            /**
             * Format: int64
             * @description How strongly the hub received the device, in dBm; of a window, the mean.
             */
            rssiDbm?: number | null;
            /** @description The units of the values that have one, in SenML (RFC 8428). */
            units: {
                [key: string]: string;
            };
            /** @description The values by quantity, or by `quantity[index]` of one that occurs more than once: numbers, texts and booleans. */
            values: {
                [key: string]: unknown;
            };
        };
        /** @description A login of a person. */
        Session: {
            /** @description Sent as `Authorization: Bearer ...`. */
            accessToken: string;
            /**
             * Format: date-time
             * @description When the access token expires.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt: string;
            /**
             * Format: uuid
             * @description The default persona of the account. In a tenant, the persona of that tenant applies.
             */
            personaUuid: string;
            /** @description Works once: each refresh returns a new one. A login ends 30 days after it began. */
            refreshToken: string;
            /**
             * Format: uuid
             * @description The account.
             */
            userUuid: string;
        };
        /** @description The person to delegate a hub to, who need not have an account yet: exactly one of `userUuid` and `email`. */
        SetupDelegationRequest: {
            /**
             * Format: email
             * @description The e-mail address of the account that the person has or will create.
             */
            email?: string | null;
            /**
             * Format: date-time
             * @description When the delegation expires, in the future; never when absent.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt?: string | null;
            /**
             * Format: uuid
             * @description The account of the person.
             */
            userUuid?: string | null;
        };
        /** @description A hub that is delegated to a person. */
        SetupDelegationResponse: {
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description The e-mail address of the person. */
            email?: string | null;
            /**
             * Format: date-time
             * @description When the delegation expires; null when it does not.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt?: string | null;
            /**
             * Format: uuid
             * @description The hub.
             */
            hubUuid: string;
            /**
             * Format: int64
             * @description The id of the delegation.
             */
            id: number;
            /**
             * Format: uuid
             * @description The account of the person.
             */
            userUuid?: string | null;
        };
        /**
         * @description How bad it is.
         *
         *     - `INFO`: Good to know.
         *     - `WARNING`: Somebody should look at it.
         *     - `CRITICAL`: Something has stopped that does not go on by itself.
         * @enum {string}
         */
        Severity: "INFO" | "WARNING" | "CRITICAL";
        /** @description An issuer at which people sign in. */
        SignInIssuer: {
            /** @description Its URL. */
            issuer: string;
            /** @description A name to show: the issuer's host. */
            name: string;
        };
        /** @description What a page to sign in with has to offer. */
        SignInMethods: {
            /** @description The issuer at which people sign in as well; null if there is none. */
            oidc?: components["schemas"]["SignInIssuer"] | null;
            /** @description Whether people sign in with e-mail and password. */
            password: boolean;
            /** @description Whether a new password can be requested by mail. */
            passwordReset: boolean;
            /** @description Who may create an account with e-mail and password; `CLOSED` also where there are none. */
            registration: components["schemas"]["Registration"];
        };
        /** @description What a pipeline makes of an event. */
        SimulatedPipelineResponse: {
            /** @description Why it could not be tried. */
            error?: string | null;
            /** @description The event after its steps, or the text of a template; a list if a script made several; null if nothing is left. */
            output: unknown;
            /**
             * Format: uuid
             * @description The pipeline.
             */
            pipelineUuid: string;
            /** @description The steps, as far as the event gets. */
            steps: components["schemas"]["StepTrace"][];
        };
        /** @description An example of an event. */
        SimulationPreset: {
            /** @description Its maker. */
            brand: string;
            /** @description An event as hubs upload it, received now. */
            event: components["schemas"]["BleEvent"];
            /** @description The key of the library's model. */
            key: string;
            /** @description The name of the model. */
            title: string;
        };
        /** @description An event to simulate: `preset` or `event`. */
        SimulationRequest: {
            /** @description An event as hubs upload it. */
            event?: components["schemas"]["BleEvent"] | null;
            /**
             * Format: uuid
             * @description The hub that receives it, for rules that name hubs.
             */
            hubUuid?: string | null;
            /**
             * Format: uuid
             * @description The pipeline to try alone; all when absent.
             */
            pipelineUuid?: string | null;
            /** @description The key of an example. */
            preset?: string | null;
        };
        /** @description What would become of an event. */
        SimulationResult: {
            /** @description All identifiers that it fits, the most specific first. */
            candidates: components["schemas"]["CandidateResponse"][];
            /** @description What the service does with it if it arrives. */
            cloudRoute: components["schemas"]["RouteDecisionResponse"];
            /**
             * Format: int64
             * @description The registered device; null if it is none.
             */
            deviceInstanceId?: number | null;
            /**
             * Format: int64
             * @description How long it took to recognise and read it.
             */
            durationMicros: number;
            /** @description Why it cannot be read; null if it can. */
            error?: string | null;
            /** @description The event. */
            event: components["schemas"]["BleEvent"];
            /** @description What the hub does with it. */
            hubRoute: components["schemas"]["RouteDecisionResponse"];
            /** @description The model, and the identifier that wins; null if no model is known. */
            matched?: components["schemas"]["MatchedResponse"] | null;
            /** @description What it says. */
            measurements: components["schemas"]["MeasurementResponse"][];
            /** @description What each pipeline that takes it makes of it. */
            pipelines: components["schemas"]["SimulatedPipelineResponse"][];
            /** @description How far it would be processed. */
            processingStatus: components["schemas"]["ProcessingStatus"];
            /** @description What reads it; null if nothing does. */
            protocol?: components["schemas"]["ProtocolUsedResponse"] | null;
        };
        /** @description Which events a pipeline takes; all where nothing is named. */
        SourceRequest: {
            /** @description Events of hubs to which a bundle has bound the pipeline, and of those in `hubUuids`. Where `hubUuids` names any, those that it is bound to are taken as well. */
            boundHubs?: boolean | null;
            /** @description Events of these devices. */
            deviceInstanceIds?: number[] | null;
            /** @description Events of devices of these models. */
            deviceUuids?: string[] | null;
            /** @description Events that these hubs received. */
            hubUuids?: string[] | null;
            /** @description Whether a model of the catalog has to be known, or must not be. */
            known?: boolean | null;
            /** @description Events with a measurement of one of these quantities. */
            quantities?: string[] | null;
            /** @description Where a new pipeline begins: `NOW`, or the time of receipt of its first event; NOW when absent. A change does not move a pipeline. */
            startAt?: string | null;
        };
        /**
         * @description Where an event is on its way.
         *
         *     - `PENDING`: It is still to be delivered.
         *     - `DELIVERED`: The supplier has accepted it.
         *     - `FAILED`: It was given up.
         * @enum {string}
         */
        Status: "PENDING" | "DELIVERED" | "FAILED";
        /** @description What a step made of an event. */
        StepTrace: {
            /** @description Whether it dropped the event. */
            dropped?: boolean | null;
            /**
             * Format: uint64
             * @description How long it took.
             */
            durationMicros: number;
            /** @description Why it failed. */
            error?: string | null;
            /** @description The step. */
            op: string;
            /** @description The event after it, or the text of a template; a list of them if a script made several. */
            output?: unknown;
        };
        /** @description Events to simulate: `events`, or `preset` or `event` with `count`. */
        StreamSimulationRequest: {
            /**
             * Format: int64
             * @description How often `preset` or `event` is received; once when absent.
             */
            count?: number | null;
            /** @description An event as hubs upload it. */
            event?: components["schemas"]["BleEvent"] | null;
            /** @description Events as hubs upload them. */
            events?: components["schemas"]["BleEvent"][] | null;
            /**
             * Format: uuid
             * @description The hub that receives them, for rules that name hubs.
             */
            hubUuid?: string | null;
            /**
             * Format: int64
             * @description Milliseconds between two receptions of `preset` or `event`; 1,000 when absent.
             */
            intervalMillis?: number | null;
            /**
             * Format: uuid
             * @description The pipeline to try alone; all when absent.
             */
            pipelineUuid?: string | null;
            /** @description The key of an example. */
            preset?: string | null;
        };
        /** @description Text, or a whole number that is read as its digits. */
        StringOrInteger: string | number;
        /** @description The token that the supplier's own URLs are called with. The names are those of OAuth. */
        SupplierAccessToken: {
            /** @description The token. */
            access_token: string;
            /**
             * Format: date-time
             * @description When it expires; null where the supplier does not say.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expires_at?: string | null;
            /** @description `Bearer`. */
            token_type: string;
        };
        /** @description What a link would be for. */
        SupplierConsentResponse: {
            /** @description What to show before the user agrees. */
            consent_text?: string | null;
            /** @description The scope that is asked for. */
            scope: string;
            /** @description Where the user's id at the supplier is read. */
            userinfo_url?: string | null;
        };
        /** @description A user's link to their account at a supplier. */
        SupplierLinkResponse: {
            /**
             * Format: date-time
             * @description When the token expires that the service has now; null where the supplier does not say.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt?: string | null;
            /**
             * Format: int64
             * @description The id of the link.
             */
            id: number;
            /**
             * Format: date-time
             * @description When the account was linked, or linked again.
             * @example 2026-01-31T08:00:00.000000Z
             */
            linkedAt: string;
            /** @description What the link allows. */
            scope: string;
            /** @description Whether the link is in force. */
            status: components["schemas"]["LinkStatus"];
            /** @description The name of the supplier. */
            supplierName: string;
            /**
             * Format: uuid
             * @description The supplier.
             */
            supplierUuid: string;
            /** @description The user's id at the supplier, where the supplier tells it. */
            userSub?: string | null;
        };
        /** @description A link that has ended. */
        SupplierLinkRevoked: {
            /**
             * Format: int64
             * @description The id of the link.
             */
            id: number;
            /** @description Whether the supplier has revoked its tokens already. If not, and the supplier can, the service goes on to ask for a day. */
            revokedAtSupplier: boolean;
            /** @description It is over here. */
            status: components["schemas"]["LinkStatus"];
        };
        /** @description A change that waits for approval. */
        SupplierOauthApprovalResponse: {
            /** @description What became of the last change. PENDING of a PUT: this waits for the platform, and is not in force yet. PENDING of a GET: this is in force, and a change waits. */
            approvalStatus: components["schemas"]["ApprovalStatus"];
            /** @description Where a user is sent to agree to the link. */
            authorize_url: string;
            /** @description Whether the change has another `client_secret`. */
            clientSecretChanged: boolean;
            /** @description Whether there is a `client_secret`. */
            clientSecretSet: boolean;
            /** @description The client that this service is at the authorization server. */
            client_id: string;
            /** @description What users read before they agree. */
            consent_text?: string | null;
            /**
             * Format: int64
             * @description The id of the change.
             */
            id: number;
            /** @description The issuer of the authorization server. */
            issuer?: string | null;
            /** @description The configuration in force; null when there is none. */
            live?: components["schemas"]["SupplierOauthConfigResponse"] | null;
            /** @description Whether the change has another `registration_shared_secret`. */
            registrationSharedSecretChanged: boolean;
            /** @description Whether there is a `registration_shared_secret`. */
            registrationSharedSecretSet: boolean;
            /** @description Where registration events are sent. */
            registration_url?: string | null;
            /** @description Where users may be sent back to. */
            return_urls: string[];
            /** @description Where tokens are revoked (RFC 7009). */
            revoke_url?: string | null;
            /** @description The scope that is asked for. */
            scope: string;
            /**
             * Format: uuid
             * @description The supplier.
             */
            supplier_uuid: string;
            /** @description Where codes and refresh tokens are exchanged for tokens. */
            token_url: string;
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
            /** @description Where the user's id at the supplier is read. */
            userinfo_url?: string | null;
        };
        /** @description What became of a configuration that was to be deleted: its `status`. */
        SupplierOauthConfigDeleted: {
            [key: string]: string;
        };
        /** @description The configuration of a supplier's authorization server, and of the system that is told about registrations. It replaces the one before as a whole; only a secret that is absent keeps its value. */
        SupplierOauthConfigRequest: {
            /** @description Where a user is sent to agree to the link. */
            authorize_url: string;
            /** @description The client that this service is at the authorization server. */
            client_id: string;
            /** @description The secret of the client; when absent, it keeps its value. */
            client_secret?: string | null;
            /** @description What users read before they agree. */
            consent_text?: string | null;
            /** @description The issuer of the authorization server, a URL. */
            issuer?: string | null;
            /** @description The secret that signs registration events, and the webhooks of the supplier; when absent, it keeps its value. */
            registration_shared_secret?: string | null;
            /** @description Where registration events are sent. */
            registration_url?: string | null;
            /** @description Where users may be sent back to: URLs with `https`, or with a scheme of an app that contains a dot, such as `com.example.app:/linked`. */
            return_urls?: string[] | null;
            /** @description Where tokens are revoked (RFC 7009). */
            revoke_url?: string | null;
            /** @description The scope that is asked for. */
            scope: string;
            /**
             * Format: uuid
             * @description The supplier. Required of the platform; of a tenant, its own.
             */
            supplier_uuid?: string | null;
            /** @description Where codes and refresh tokens are exchanged for tokens. */
            token_url: string;
            /** @description Where the user's id at the supplier is read. */
            userinfo_url?: string | null;
        };
        /** @description A supplier's OAuth configuration, without its secrets. */
        SupplierOauthConfigResponse: {
            /** @description What became of the last change. PENDING of a PUT: this waits for the platform, and is not in force yet. PENDING of a GET: this is in force, and a change waits. */
            approvalStatus: components["schemas"]["ApprovalStatus"];
            /** @description Where a user is sent to agree to the link. */
            authorize_url: string;
            /** @description Whether there is a `client_secret`. */
            clientSecretSet: boolean;
            /** @description The client that this service is at the authorization server. */
            client_id: string;
            /** @description What users read before they agree. */
            consent_text?: string | null;
            /** @description The issuer of the authorization server. */
            issuer?: string | null;
            /** @description Whether there is a `registration_shared_secret`. */
            registrationSharedSecretSet: boolean;
            /** @description Where registration events are sent. */
            registration_url?: string | null;
            /** @description Where users may be sent back to. */
            return_urls: string[];
            /** @description Where tokens are revoked (RFC 7009). */
            revoke_url?: string | null;
            /** @description The scope that is asked for. */
            scope: string;
            /**
             * Format: uuid
             * @description The supplier.
             */
            supplier_uuid: string;
            /** @description Where codes and refresh tokens are exchanged for tokens. */
            token_url: string;
            /**
             * Format: date-time
             * @description When it was last changed.
             * @example 2026-01-31T08:00:00.000000Z
             */
            updatedAt: string;
            /** @description Where the user's id at the supplier is read. */
            userinfo_url?: string | null;
        };
        /** @description A change of a user's permissions at the supplier. */
        SupplierPermissionRequest: {
            /** @description The user's id at the supplier. */
            user_sub: string;
        };
        /** @description What the service knows of that user. */
        SupplierPermissionResponse: {
            /**
             * Format: int64
             * @description Active links to that account, which are now looked at anew.
             */
            links: number;
            /** @description The user's id at the supplier. */
            user_sub: string;
        };
        /** @description An invitation as the members of the tenant see it. Its token is in the mail alone. */
        TenantInvitationResponse: {
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description Who is invited, for an ADMIN or OWNER; null for others. */
            email?: string | null;
            /**
             * Format: date-time
             * @description When it expires: seven days after `sentAt`.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt: string;
            /**
             * Format: int64
             * @description The id of the invitation.
             */
            invitationId: number;
            /**
             * Format: uuid
             * @description The user who sent it.
             */
            invitedByUserUuid: string;
            /** @description The role that the person will have. */
            role: components["schemas"]["Role"];
            /**
             * Format: date-time
             * @description When the mail was last requested.
             * @example 2026-01-31T08:00:00.000000Z
             */
            sentAt: string;
            /** @description The status of the invitation. */
            status: components["schemas"]["InvitationStatus"];
        };
        /** @description The limits of a tenant. A limit that is absent or null is the service's default. */
        TenantLimits: {
            /**
             * Format: int64
             * @description API keys in force.
             */
            apiKeys?: number | null;
            /**
             * Format: int64
             * @description Bytes of records uploaded in a day (UTC).
             */
            bytesPerDay?: number | null;
            /**
             * Format: int64
             * @description Hubs.
             */
            hubs?: number | null;
            /** @description How long records are kept. */
            retentionDays?: components["schemas"]["RetentionDays"];
            /**
             * Format: int64
             * @description Bytes of stored records.
             */
            storedBytes?: number | null;
            /**
             * Format: int64
             * @description Streams at a time.
             */
            streams?: number | null;
            /**
             * Format: int64
             * @description Uploads a minute, for each kind of record.
             */
            uploadsPerMinute?: number | null;
        };
        /** @description A member of a tenant. */
        TenantMemberResponse: {
            /**
             * Format: date-time
             * @description When the member first joined.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description The e-mail address of the account, for an ADMIN or OWNER; null for others, and where the account has none. */
            email?: string | null;
            /** @description The name shown to others. */
            nickname?: string | null;
            /**
             * Format: uuid
             * @description The persona of the member in this tenant.
             */
            personaUuid: string;
            /** @description The role of the member. */
            role: components["schemas"]["Role"];
            /**
             * Format: uuid
             * @description The account of the member.
             */
            userUuid: string;
        };
        /** @description The members of a tenant, and its open invitations. */
        TenantPersonasResponse: {
            /** @description The invitations that are PENDING or EXPIRED, the last sent first. */
            invitations: components["schemas"]["TenantInvitationResponse"][];
            /** @description All members, in the order in which they joined. */
            members: components["schemas"]["TenantMemberResponse"][];
        };
        /** @description A tenant as one of its members sees it. */
        TenantResponse: {
            /**
             * Format: uuid
             * @description Who made the caller a member, until the caller accepts the membership; null for one that the caller accepted or joined. It grants the role either way, and counts only when accepted.
             */
            addedByUserUuid?: string | null;
            /**
             * Format: date-time
             * @description When it was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description The name of the tenant. */
            name: string;
            /**
             * Format: uuid
             * @description The caller's persona in it.
             */
            personaUuid: string;
            /** @description The caller's role in it. */
            role: components["schemas"]["Role"];
            /**
             * Format: uuid
             * @description The tenant. The uuid is also that of the supplier.
             */
            tenantUuid: string;
        };
        /** @description A request to transfer a tenant to another owner. */
        TenantTransferRequestResponse: {
            /**
             * Format: date-time
             * @description When the request was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When the request expires.
             * @example 2026-01-31T08:00:00.000000Z
             */
            expiresAt: string;
            /** @description The message to the recipient. */
            message?: string | null;
            /**
             * Format: uuid
             * @description The request.
             */
            requestUuid: string;
            /** @description The e-mail address of the requester, for the requester, the person who is asked, and the ADMIN or OWNER of either tenant; null for others, and where the requester has none. */
            requestedByEmail?: string | null;
            /**
             * Format: uuid
             * @description The persona of the requester in the tenant.
             */
            requestedByPersonaUuid: string;
            /**
             * Format: date-time
             * @description When it was accepted, rejected or cancelled, or expired.
             * @example 2026-01-31T08:00:00.000000Z
             */
            settledAt?: string | null;
            /** @description The status of the request. */
            status: components["schemas"]["TransferRequestStatus"];
            /**
             * Format: uuid
             * @description The persona that the tenant is offered to.
             */
            targetPersonaUuid?: string | null;
            /**
             * Format: uuid
             * @description The tenant that it is offered to.
             */
            targetTenantUuid?: string | null;
            /** @description The name of that tenant. */
            tenantName: string;
            /**
             * Format: uuid
             * @description The tenant to transfer.
             */
            tenantUuid: string;
        };
        /** @description From which value on there is a notice: a number, whose unit is that of the type; of DEVICE_THRESHOLD a quantity with its bounds, or a number, above which a temperature in degrees Celsius must not be. */
        Threshold: number | components["schemas"]["Bounds"];
        /** @description A period of a device's timeline. */
        TimelinePeriodResponse: {
            /**
             * Format: date-time
             * @description When the period begins.
             * @example 2026-01-31T08:00:00.000000Z
             */
            from: string;
            /** @description Whether the device was heard. */
            status: components["schemas"]["TimelineStatus"];
            /**
             * Format: date-time
             * @description When it ends, not included.
             * @example 2026-01-31T08:00:00.000000Z
             */
            to: string;
        };
        /**
         * @description Whether a device was heard.
         *
         *     - `HEARD`: Hubs received it within three of its intervals, or within 10 minutes.
         *     - `SILENT`: No hub received it, and one that could was listening.
         *     - `HUB_BLIND`: No hub that could receive it was listening.
         * @enum {string}
         */
        TimelineStatus: "HEARD" | "SILENT" | "HUB_BLIND";
        /**
         * @description The status of a transfer request.
         *
         *     - `PENDING`: Nobody has answered yet.
         *     - `ACCEPTED`: The tenant has changed hands.
         *     - `REJECTED`: It was rejected.
         *     - `CANCELLED`: The requester or an OWNER cancelled it, or the tenant was deleted.
         *     - `EXPIRED`: Nobody responded within seven days.
         * @enum {string}
         */
        TransferRequestStatus: "PENDING" | "ACCEPTED" | "REJECTED" | "CANCELLED" | "EXPIRED";
        /** @description What was made. */
        TranspileResponse: {
            /** @description Of a pipeline: the graph. */
            graph?: unknown;
            /** @description The pipeline, as it can be posted. Its destination may have to be completed, where a warning says so. */
            pipeline?: components["schemas"]["CreatePipelineRequest"] | null;
            /** @description What to know of it. */
            warnings: components["schemas"]["Warning"][];
        };
        /** @description An advertiser that is of no known model. Those whose address changes are counted together by what they advertise. */
        UnknownAdvertiserResponse: {
            /** @description The address, the last one where it changes. It is the `fromUnknown` of a new device model. */
            address: string;
            /** @description `public` or `random`, where hubs told it. */
            addressType?: string | null;
            /** @description The company identifier of its manufacturer data: 4 lower-case hex digits. */
            companyId?: string | null;
            /** @description The name of the company, where it is known. */
            companyName?: string | null;
            /**
             * Format: int64
             * @description Advertisements received.
             */
            count: number;
            /**
             * Format: date-time
             * @description When it was first received.
             * @example 2026-01-31T08:00:00.000000Z
             */
            firstSeenAt: string;
            /** @description Hubs that received it, 64 at most. */
            hubUuids: string[];
            /**
             * Format: date-time
             * @description When it was last received.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastSeenAt: string;
            /** @description The name that it advertises. */
            name?: string | null;
            /**
             * Format: int16
             * @description The strongest signal, in dBm.
             */
            rssiMax?: number | null;
            /** @description One of its advertisements, as a hub sent it. */
            sample: {
                [key: string]: unknown;
            };
            /** @description The services that it advertises, or has data of. */
            serviceUuids: string[];
            /** @description Models of the library that fit it, the most specific first: values of `template`. */
            suggestions: string[];
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone. */
        UpdateAgentReleaseRequest: {
            /** @description Whether it is offered. */
            active?: boolean | null;
            /** @description The channel to move it to: a release that proved itself in `beta` becomes `stable` this way. */
            channel?: string | null;
        };
        /** @description Changes of a draft. An absent or null member stays unchanged. */
        UpdateBundleRequest: {
            /** @description Whether it is applied to hubs whose claim code names no bundle. */
            autoApply?: boolean | null;
            /** @description A text for people; an empty one removes it. */
            description?: string | null;
            /** @description A name for people. */
            name?: string | null;
        };
        /** @description What to change of a device. A member that is absent leaves the stored value alone; null removes it. */
        UpdateDeviceInstanceRequest: {
            /** @description The key that its advertisements are encrypted with: 16 bytes, or 12 of older MiBeacon devices, as hex digits. It is never answered. */
            bindKey?: string | null;
            /** @description All corrections by quantity, in place of the stored ones. */
            calibration?: {
                [key: string]: components["schemas"]["Calibration"];
            } | null;
            /**
             * Format: uuid
             * @description The version of the model that the device is.
             */
            deviceVersionUuid?: string | null;
            /** @description The key that its changing addresses are made from: 16 bytes as hex digits. It is never answered. */
            identityResolvingKey?: string | null;
            /** @description All names and values, in place of the stored ones: at most 64, with names of 1 to 64 characters and values of at most 256, and 8 KiB in all. */
            labels?: {
                [key: string]: string;
            } | null;
            /** @description A name for people. */
            name?: string | null;
            /** @description The serial number, as its maker writes it. */
            serialNumber?: string | null;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone, an empty locale removes it. Another format needs its text or URL, and removes that of the format before. */
        UpdateDeviceManualRequest: {
            /** @description Its text in Markdown, of 64 KiB at most. */
            content?: string | null;
            /** @description Where its text is. */
            format?: components["schemas"]["ManualFormat"] | null;
            /** @description The language of it, such as `pt-BR`. */
            locale?: string | null;
            /** @description What it is called. */
            title?: string | null;
            /** @description Where its text is: a URL with `https` or `http`. */
            url?: string | null;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone, empty text removes it. Other conditions are another identifier. */
        UpdateDeviceMatchIdentifierRequest: {
            /** @description A label for people. */
            label?: string | null;
            /** @description A text for people. */
            notes?: string | null;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone. The result is compiled and tested like a new protocol. */
        UpdateDeviceProtocolRequest: {
            /** @description What the kind demands. */
            definition?: unknown;
            /** @description How it is given. */
            kind?: components["schemas"]["DeviceProtocolKind"] | null;
            /** @description A name for people. */
            name?: string | null;
            /** @description Advertisements with what they say; they replace all that were given before. */
            tests?: {
                [key: string]: unknown;
            }[] | null;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone, empty text removes it. */
        UpdateDeviceRequest: {
            /** @description Other names of it; they replace all that were given before. */
            aliases?: string[] | null;
            /** @description Whether a device is registered when it is recognised for the first time. */
            autoRegister?: boolean | null;
            /** @description Who sells it. */
            brand?: string | null;
            /** @description What kind of device it is, such as `climate`. */
            category?: string | null;
            /** @description A text for people. */
            description?: string | null;
            /**
             * Format: int64
             * @description How often a device sends, in seconds; 0 removes it.
             */
            expectedIntervalSeconds?: number | null;
            /** @description A picture of it: a URL with `https` or `http`. */
            imageUrl?: string | null;
            /** @description What it measures; this replaces all that was given before. */
            metrics?: components["schemas"]["DeviceMetricRequest"][] | null;
            /** @description What the maker calls it. */
            model?: string | null;
            /** @description A name for people. */
            name?: string | null;
            /**
             * Format: int64
             * @description The power received at a distance of one metre, from -127 to 20; 127 (not known) removes it.
             */
            referencePowerDbm?: number | null;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone, an empty locale removes it. */
        UpdateDeviceUiRequest: {
            /** @description Its steps; they replace all that were given before. */
            configJson?: components["schemas"]["DeviceUiConfig"] | null;
            /** @description What it is for. */
            kind?: components["schemas"]["DeviceUiKind"] | null;
            /** @description The language of it, such as `pt-BR`. */
            locale?: string | null;
            /** @description A name for people. */
            name?: string | null;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone, empty text removes it. */
        UpdateDeviceVersionRequest: {
            /**
             * Format: int64
             * @description The protocol of the same model that reads it; 0 for the newest of the model.
             */
            deviceProtocolId?: number | null;
            /** @description The firmware of it. */
            firmwareVersion?: string | null;
            /** @description The hardware of it. */
            hardwareVersion?: string | null;
            /** @description A text for people. */
            notes?: string | null;
            /** @description Whether it is on sale. */
            released?: boolean | null;
            /** @description Its name, unique within the model. */
            version?: string | null;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone. */
        UpdatePersonaRoleRequest: {
            /** @description The role to set. Only an OWNER may grant or take away OWNER. */
            role?: components["schemas"]["Role"] | null;
        };
        /** @description A pipeline to create. A member that is not known is an error. */
        UpdatePipelineRequest: {
            /** @description How it is sent. */
            delivery?: components["schemas"]["DeliveryRequest"] | null;
            /** @description A text for people. */
            description?: string | null;
            /** @description Where what is left goes. `kind` is HTTP, MQTT, NATS or S3; each has members of its own. */
            destination: {
                [key: string]: unknown;
            };
            /** @description Whether it runs; true when absent. */
            enabled?: boolean | null;
            /** @description A name for people. */
            name: string;
            /** @description Which events it takes. */
            source: components["schemas"]["SourceRequest"];
            /** @description What is done with each event, in order. */
            steps?: {
                [key: string]: unknown;
            }[] | null;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone. */
        UpdateTenantRequest: {
            /** @description Its name. */
            name?: string | null;
        };
        /** @description The pauses between the uploads of a hub. They follow from the limit of its tenant and the number of hubs that share it: a hub that keeps to them is not answered 429. With a pause of P, uploads are due when the milliseconds since 1970, by the service's clock, divided by P leave a rest of `phase` times P. */
        UploadPauses: {
            /**
             * Format: int64
             * @description Milliseconds between two uploads of BLE events, single and windowed together.
             */
            bleEventsPauseMs: number;
            /**
             * Format: int64
             * @description Milliseconds between two uploads of log entries.
             */
            logsPauseMs: number;
            /**
             * Format: double
             * @description The hub's place between the beginning and the end of a pause: 0 or more, less than 1.
             */
            phase: number;
            /**
             * Format: int64
             * @description Milliseconds between two uploads of telemetry.
             */
            telemetryPauseMs: number;
        };
        /** @description What the tenant wants to be told, and how. There is one setting for each type and channel. */
        UpsertNotificationSettingRequest: {
            /** @description How. */
            channel: components["schemas"]["Channel"];
            /** @description Whether to tell. */
            enabled: boolean;
            /** @description Whom: of EMAIL an address, or all who manage the tenant when absent; of WEBHOOK the URL to call; of IN_APP nobody in particular. */
            target?: string | null;
            /** @description From which value on; each type has a default, but DEVICE_THRESHOLD. */
            threshold?: components["schemas"]["Threshold"] | null;
            /** @description What to tell of. */
            type: components["schemas"]["NoticeType"];
        };
        /** @description What a person says of themselves. */
        UserProfileResponse: {
            /** @description The address of a picture. */
            avatarUrl?: string | null;
            /**
             * Format: date-time
             * @description When the account was created.
             * @example 2026-01-31T08:00:00.000000Z
             */
            createdAt: string;
            /** @description Its e-mail address; null if its issuer vouches for none. */
            email?: string | null;
            /** @description The language to speak with the person. */
            locale?: string | null;
            /** @description The name to show to others. */
            nickname?: string | null;
            /** @description A telephone number. */
            phone?: string | null;
            /** @description The time zone. */
            timeZone?: string | null;
            /**
             * Format: uuid
             * @description The account.
             */
            userUuid: string;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone, empty text removes it. */
        UserProfileUpdateRequest: {
            /** @description The address of a picture, with `https` or `http`. */
            avatarUrl?: string | null;
            /** @description The language to speak with the person, such as `pt-BR`. */
            locale?: string | null;
            /** @description The name to show to others. */
            nickname?: string | null;
            /** @description A telephone number with its country code and without blanks, such as `+4930901820`. */
            phone?: string | null;
            /** @description The time zone by its name, such as `Europe/Berlin`. */
            timeZone?: string | null;
        };
        /**
         * @description How a tenant proves that a domain is its own.
         *
         *     - `DNS_TXT`: A TXT record at `_hub-verify.<domain>`.
         *     - `WELL_KNOWN`: The file `/.well-known/hub-verify.txt`.
         * @enum {string}
         */
        VerifyMethod: "DNS_TXT" | "WELL_KNOWN";
        /** @description Something to know of a pipeline that can be made all the same. */
        Warning: {
            /** @description For people. */
            message: string;
            /** @description The node that it is about. */
            nodeId?: string | null;
        };
        /** @description What became of deliveries. */
        WebhookNumbers: {
            /**
             * Format: int64
             * @description The tries.
             */
            attempts: number;
            /**
             * Format: int64
             * @description Those that the receiver accepted.
             */
            succeeded: number;
            /**
             * Format: double
             * @description The share of them, from 0 to 1; null without tries.
             */
            successShare?: number | null;
        };
        /** @description What was received from one device between two times. */
        WindowResponse: {
            /**
             * Format: int64
             * @description Advertisements received.
             */
            count: number;
            /**
             * Format: date-time
             * @description The first advertisement of the window.
             * @example 2026-01-31T08:00:00.000000Z
             */
            firstSeenAt: string;
            /**
             * Format: date-time
             * @description The last advertisement of the window.
             * @example 2026-01-31T08:00:00.000000Z
             */
            lastSeenAt: string;
            /**
             * Format: int16
             * @description The strongest signal, in dBm.
             */
            rssiMax: number;
            /**
             * Format: double
             * @description The mean of the signal strengths, in dBm.
             */
            rssiMean: number;
            /**
             * Format: int16
             * @description The weakest signal, in dBm.
             */
            rssiMin: number;
            /**
             * Format: date-time
             * @description When the window ended.
             * @example 2026-01-31T08:00:00.000000Z
             */
            windowEnd: string;
            /**
             * Format: date-time
             * @description When the window began.
             * @example 2026-01-31T08:00:00.000000Z
             */
            windowStart: string;
        };
        /** @description `POST /v1/ble/events/windowed`: what was received from each device between two times. */
        WindowedBleEventRequest: {
            /**
             * Format: uuid
             * @description Chosen by the hub before it sends; the same batch is stored once, for 7 days.
             */
            batchUuid: string;
            /** @description The devices. One that is not valid is rejected by its index; the others are stored. */
            devices: components["schemas"]["BleDeviceWindow"][];
            /**
             * Format: date-time
             * @description When the window ended, not before it began.
             * @example 2026-01-31T08:00:00.000000Z
             */
            windowEnd: string;
            /**
             * Format: date-time
             * @description When the window began.
             * @example 2026-01-31T08:00:00.000000Z
             */
            windowStart: string;
        };
    };
    responses: {
        /** @description A server that somebody else runs failed, or answered what it should not. */
        BadGateway: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The request is malformed, or `errors` names the fields that are not valid. */
        BadRequest: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The state of the object, or a rule over several objects, forbids this. */
        Conflict: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is too large, as sent or once decompressed. */
        ContentTooLarge: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The caller is known and may not do this. */
        Forbidden: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description A server that somebody else runs did not answer in time. */
        GatewayTimeout: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The object existed and can no longer be used. */
        Gone: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The tenant's quota of stored bytes is full, or the service's disk is. */
        InsufficientStorage: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description A fault of the service; its log has the cause under the request id. */
        InternalServerError: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The hub is blocked. */
        Locked: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The object does not exist, or belongs to another tenant. */
        NotFound: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description A setting that this request depends on is missing. */
        PreconditionFailed: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The range starts beyond the end of the file. */
        RangeNotSatisfiable: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "Content-Range": components["headers"]["Content-Range"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The body did not arrive in time; send the request again. */
        RequestTimeout: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description A component that the service requires is unavailable; try again after `Retry-After`. */
        ServiceUnavailable: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description A limit is reached; wait for as long as `Retry-After` says. */
        TooManyRequests: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The credential is missing, malformed, expired or revoked. */
        Unauthorized: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
        /** @description The body has another media type or encoding than the operation accepts. */
        UnsupportedMediaType: {
            headers: {
                "Cache-Control": components["headers"]["Cache-Control"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description `bytes`: the file can be fetched in pieces with `Range`. */
        "Accept-Ranges": string;
        /** @description Who may cache the response, and for how long; `no-store` unless the operation says otherwise. */
        "Cache-Control": string;
        /** @description The name to store the file under. */
        "Content-Disposition": string;
        /** @description Which bytes of the file the response contains, and how many the file has. */
        "Content-Range": string;
        /** @description The version of the response. Send it as `If-None-Match` to get 304 while it is unchanged. */
        ETag: string;
        /** @description URLs of the `first`, `prev`, `next` and `last` page (RFC 8288). */
        Link: string;
        /** @description Where to go next. */
        Location: string;
        /** @description Requests allowed a minute. */
        "RateLimit-Limit": number;
        /** @description Requests left in the current minute. */
        "RateLimit-Remaining": number;
        /** @description Seconds until the next minute begins. */
        "RateLimit-Reset": number;
        /** @description Seconds to wait before the next attempt. */
        "Retry-After": number;
        /** @description A cookie that scripts cannot read, to keep or to forget. */
        "Set-Cookie": string;
        /** @description The scheme of the required credential. */
        "WWW-Authenticate": string;
        /** @description `no`: proxies must forward events at once. */
        "X-Accel-Buffering": string;
        /** @description The id of the request, which the service's log has too. */
        "X-Request-Id": string;
        /** @description Items in the whole list, exact up to 100,000. */
        "X-Total-Count": number;
        /** @description The status with which the supplier's endpoint answered. */
        "X-Upstream-Status": number;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    "auth.getJwks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The keys in use. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeySet"];
                };
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appActionDefinitions.list": {
        parameters: {
            query: {
                /** @description The supplier of a hub of the caller. */
                supplierUuid: string;
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListActionDefinitionResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appActionDefinitions.get": {
        parameters: {
            query?: {
                /** @description The supplier; needed if several suppliers of the caller's hubs have an action of this id. */
                supplierUuid?: string;
            };
            header?: never;
            path: {
                /** @description The action, as its supplier named it. */
                actionId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseActionDefinitionResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bundleCatalog.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListBundleCatalogResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bundleCatalog.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The bundle. */
                bundleUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBundleCatalogResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appConsent.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListConsentRecordResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appConsent.grant": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description What a person grants. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConsentGrantRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseConsentRecordResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "appConsentSettings.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The supplier. */
                supplierUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseConsentSettingResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appConsent.withdraw": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the consent. */
                consentId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseVoid"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appConsent.getRetention": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the consent. */
                consentId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseRetentionSettingResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appConsent.putRetention": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the consent. */
                consentId: number;
            };
            cookie?: never;
        };
        /** @description For how long a person wants their events to be kept. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["RetentionUpdateRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseRetentionSettingResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "appDeviceUi.invoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A step of a form, filled in. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeviceUiInvokeRequest"];
            };
        };
        responses: {
            /** @description What the supplier's endpoint answered, which may be a refusal: see `X-Upstream-Status`. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Upstream-Status": components["headers"]["X-Upstream-Status"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceUiAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["ServiceUnavailable"];
            504: components["responses"]["GatewayTimeout"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "appDeviceUi.getSetup": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceUiSetupResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appDevices.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description Only devices of this hub. */
                hubUuid?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListDeviceSummaryResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appDevices.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceDetailResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appDeviceCommands.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListDeviceCommandResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appDeviceCommands.create": {
        parameters: {
            query?: {
                /** @description Seconds to hold the request until the command has ended; 10 when absent. */
                wait?: number;
            };
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        /** @description What a device shall do. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeviceCommandRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceCommandResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["ServiceUnavailable"];
            504: components["responses"]["GatewayTimeout"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "appDeviceCommands.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The command. */
                commandUuid: string;
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceCommandResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appDevices.listSensorData": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description Answers buckets of this length instead, all on one page: 10s to 1d, such as `30s`, `5m`, `1h` or `1d`. They begin at multiples of it since 1970. */
                every?: string;
                /** @description Only values observed at this time or later. In buckets, when absent: as many before `to` as 500 buckets last, but a day at least, and 4,999 buckets at most. */
                from?: string;
                /** @description Only this quantity, or one of several as `quantity[index]`. */
                quantity?: string;
                /** @description Only values observed before this time; until now when absent. */
                to?: string;
            };
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAppSensorDataResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appExport.get": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One JSON object a line: `type` says what it is and `data` has what `/app` shows of it. The last line is of the type `end` and counts the others; without it the export was cut off. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "Content-Disposition": components["headers"]["Content-Disposition"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": {
                        /** @description As `/app` shows it. */
                        data: Record<string, never>;
                        /**
                         * @description What it is.
                         * @enum {string}
                         */
                        type: "profile" | "membership" | "hub" | "device" | "sensorData" | "consent" | "supplierLink" | "deviceCommand" | "notification" | "end";
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appHubs.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListAppHubSummaryResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appPairing.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Whose hub it is going to be. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["PairingCodeRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseClaimCodeResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "appPairing.offer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A code that the caller has. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["PairingOfferRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePairingOfferResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "appHubs.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAppHubDetailResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appNotifications.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListNotificationResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appNotifications.read": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the notice. */
                notificationId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseVoid"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "pairPage.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the response that the client has; the response is 304 if it is unchanged. */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
            /** @description The client has the current response. */
            304: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "pairPage.getStyle": {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the response that the client has; the response is 304 if it is unchanged. */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/css": string;
                };
            };
            /** @description The client has the current response. */
            304: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "pairPage.getScript": {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the response that the client has; the response is 304 if it is unchanged. */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/javascript": string;
                };
            };
            /** @description The client has the current response. */
            304: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appProfile.get": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseUserProfileResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appProfile.put": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description What to change; a member that is absent or null leaves the stored value alone, empty text
         *      removes it.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UserProfileUpdateRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseUserProfileResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "appProfile.delete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description What confirms that the person means it. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["AccountDeletionRequest"];
            };
        };
        responses: {
            /** @description Done; no content. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "appProjects.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListAppProjectResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appProjects.listDevices": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path: {
                /** @description The project, as the partner names it. */
                projectId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListProjectDeviceResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appProjects.addDevices": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The project, as the partner names it. */
                projectId: string;
            };
            cookie?: never;
        };
        /** @description The devices to add: all of them, or none. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["AddDevicesRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAppProjectResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "appProjects.removeDevices": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The project, as the partner names it. */
                projectId: string;
            };
            cookie?: never;
        };
        /** @description The devices to take out: all of them, or none. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["RemoveDevicesRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAppProjectResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "appProjects.listTenants": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The project, as the partner names it. */
                projectId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListProjectTenantResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "appProjects.joinTenants": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The project, as the partner names it. */
                projectId: string;
            };
            cookie?: never;
        };
        /** @description The tenants that join: all of them, or none. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["JoinTenantsRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAppProjectResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "appProjects.leaveTenants": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The project, as the partner names it. */
                projectId: string;
            };
            cookie?: never;
        };
        /** @description The tenants that leave, with their devices: all of them, or none. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["LeaveTenantsRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAppProjectResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "supplierLinks.authorize": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Which supplier to link, and where to go afterwards. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["AuthorizeRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAuthorizeResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["ServiceUnavailable"];
            504: components["responses"]["GatewayTimeout"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "supplierLinks.list": {
        parameters: {
            query?: {
                /** @description Only links to this supplier. */
                supplierUuid?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListSupplierLinkResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "supplierLinks.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the link. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSupplierLinkRevoked"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "supplierLinks.getAccessToken": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the link. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSupplierAccessToken"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalServerError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["ServiceUnavailable"];
            504: components["responses"]["GatewayTimeout"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "supplierLinks.getConsent": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The supplier. */
                supplierUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSupplierConsentResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "auth.login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The credentials of an account. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["LoginRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSession"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "auth.logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The refresh token of a login. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["RefreshRequest"];
            };
        };
        responses: {
            /** @description Done; no content. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "signIn.getMethods": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSignInMethods"];
                };
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "signIn.callback": {
        parameters: {
            query?: {
                /** @description The authorization code. */
                code?: string;
                /** @description Why there is no code. */
                error?: string;
                /** @description The same for people. */
                error_description?: string;
                /** @description The issuer (RFC 9207). */
                iss?: string;
                /** @description The state of the sign-in. */
                state?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page that says that this browser does not wait for it. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "Set-Cookie": components["headers"]["Set-Cookie"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
            /** @description Where to go next. */
            303: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Location: components["headers"]["Location"];
                    "Set-Cookie": components["headers"]["Set-Cookie"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "signIn.begin": {
        parameters: {
            query: {
                /** @description The path of a page below `/console` or `/app/pair`, without a fragment. */
                returnTo: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Where to go next. */
            303: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Location: components["headers"]["Location"];
                    "Set-Cookie": components["headers"]["Set-Cookie"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "auth.changePassword": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Another password for the caller. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChangePasswordRequest"];
            };
        };
        responses: {
            /** @description Done; no content. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "auth.forgotPassword": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Whose password is to be set anew. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ForgotPasswordRequest"];
            };
        };
        responses: {
            /** @description Done; no content. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "auth.resetPassword": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A new password, and the token that allows it. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResetPasswordRequest"];
            };
        };
        responses: {
            /** @description Done; no content. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "auth.refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The refresh token of a login. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["RefreshRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSession"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "auth.register": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description An account to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["RegisterRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSession"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "session.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The credentials of an account. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["LoginRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "Set-Cookie": components["headers"]["Set-Cookie"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBrowserSession"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "session.delete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "Set-Cookie": components["headers"]["Set-Cookie"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "session.refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "Set-Cookie": components["headers"]["Set-Cookie"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBrowserSession"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "session.deleteAll": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "Set-Cookie": components["headers"]["Set-Cookie"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "supplierLinks.callback": {
        parameters: {
            query?: {
                /** @description The authorization code. */
                code?: string;
                /** @description Why there is no code. */
                error?: string;
                /** @description The authorization server (RFC 9207). */
                iss?: string;
                /** @description The state of the authorization. */
                state?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page that says whether the account is linked. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
            /** @description Back to the `returnUrl`, with `status=linked` or `status=failed`. */
            303: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Location: components["headers"]["Location"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalServerError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["ServiceUnavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    "console.get": {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the response that the client has; the response is 304 if it is unchanged. */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The page. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
            /** @description The client has the current response. */
            304: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "console.getFile": {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the response that the client has; the response is 304 if it is unchanged. */
                "If-None-Match"?: string;
            };
            path: {
                /** @description Its name, which contains a hash of its content. */
                file: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The file. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "image/svg+xml": string;
                    "text/css": string;
                    "text/javascript": string;
                };
            };
            /** @description The client has the current response. */
            304: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "service.docs": {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the response that the client has; the response is 304 if it is unchanged. */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page that loads nothing from other servers. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
            /** @description The client has the current response. */
            304: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "service.health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseHealth"];
                };
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "invitations.accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The invitation to accept. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["InvitationAcceptRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseTenantResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            410: components["responses"]["Gone"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "me.notifications": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListNotificationResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "service.metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The metrics. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/openmetrics-text": string;
                    "text/plain": string;
                };
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "service.openapi": {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the response that the client has; the response is 304 if it is unchanged. */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An OpenAPI 3.1 document. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            /** @description The client has the current response. */
            304: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "activationEvents.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListActivationEventResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "platformAgentReleases.list": {
        parameters: {
            query?: {
                /** @description Only releases of this channel, such as `stable` or `beta`. */
                channel?: string;
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListAgentReleaseResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "platformAgentReleases.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A signed release of the platform. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateAgentReleaseRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAgentReleaseResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "platformAgentReleases.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The release. */
                releaseUuid: string;
            };
            cookie?: never;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateAgentReleaseRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAgentReleaseResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "platformUpdatePolicies.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description Only policies of this scope. */
                scope?: components["schemas"]["PolicyScope"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListAgentUpdatePolicyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "platformUpdatePolicies.put": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description An update policy. It replaces the policy of the same scope and target. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateAgentUpdatePolicyRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAgentUpdatePolicyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "platformUpdatePolicies.abortRollout": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The update policy. */
                policyUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAgentUpdatePolicyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "platformUpdatePolicies.haltRollout": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The update policy. */
                policyUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAgentUpdatePolicyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "platformUpdatePolicies.resumeRollout": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The update policy. */
                policyUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAgentUpdatePolicyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "auditLogs.listAll": {
        parameters: {
            query?: {
                /** @description The number of the page, from 0; 0 when absent. A page starts at record 100,000 at the latest, of the audit log at 5,000. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description The one field that the list is sorted by, and the direction: `createdAt,asc` or `createdAt,desc` for lists of what was created, `receivedAt,asc` or `receivedAt,desc` for lists of what was received, `startedAt,asc` or `startedAt,desc` for deliveries. */
                sort?: string;
                /** @description Only this action, such as `hub.update`. */
                action?: string;
                /** @description Only changes by this kind of actor. */
                actorType?: components["schemas"]["ActorType"];
                /** @description Only changes by this user or hub. */
                actorUuid?: string;
                /** @description Only changes with this API key. */
                apiKeyId?: number;
                /** @description Only entries written at this time or later. */
                from?: string;
                /** @description Only changes of this object. */
                objectId?: string;
                /** @description Only changes of this type of object: the first half of an action, such as `hub`. */
                objectType?: string;
                /** @description Only entries written before this time. */
                to?: string;
                /** @description Only entries of this tenant. */
                tenantUuid?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePageAuditLogResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "platformHubs.list": {
        parameters: {
            query?: {
                /** @description The uuid of a hub or of a tenant, or the beginning of a hardware identity, a label or a host name. */
                q?: string;
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListPlatformHubResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubJobs.selfUpdate": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        /** @description The release that a hub should update its agent to, regardless of its update policy. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateForcedUpdateJobRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseHubJobResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "platformHubs.release": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseHubReleaseResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubs.block": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hub_uuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseHubBlockResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubs.unblock": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hub_uuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseHubBlockResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "permissionCache.get": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePermissionCacheResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "permissionCache.clear": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePermissionCacheResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "registrationEvents.list": {
        parameters: {
            query?: {
                /** @description Only events of this type. */
                eventType?: components["schemas"]["EventType"];
                /** @description Only events of this status. */
                status?: components["schemas"]["Status"];
                /** @description Only events of this tenant. */
                tenantUuid?: string;
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListRegistrationEventResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "registrationEvents.retry": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the event. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseRegistrationEventResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "platformSupplierOauthConfigs.put": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description The configuration of a supplier's authorization server, and of the system that is told about
         *      registrations. It replaces the one before as a whole; only a secret that is absent keeps its
         *      value.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["SupplierOauthConfigRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSupplierOauthConfigResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "supplierOauthApprovals.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListSupplierOauthApprovalResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "supplierOauthApprovals.approve": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the change. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSupplierOauthConfigResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "supplierOauthApprovals.reject": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the change. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSupplierOauthConfigResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "platformTenants.list": {
        parameters: {
            query?: {
                /** @description Part of the name, in any case, or the uuid. */
                q?: string;
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListPlatformTenantResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "platformTenants.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tenant. */
                tenantUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePlatformTenantDetailResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "platformTenants.setLimits": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tenant. */
                tenantUuid: string;
            };
            cookie?: never;
        };
        /** @description The limits of a tenant. A limit that is absent or null is the service's default. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["TenantLimits"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseTenantLimits"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "library.list": {
        parameters: {
            query?: {
                /** @description Only models with this in their key, name, brand, model or other names; case is ignored. */
                q?: string;
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListLibraryModelResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "library.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The first half of the key of a model, such as `ruuvi`. */
                brand: string;
                /** @description The second half, such as `ruuvitag`. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseLibraryModelDetailResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "invitations.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The token of the invitation, from the mail. */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePublicInvitationResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            404: components["responses"]["NotFound"];
            410: components["responses"]["Gone"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "library.listQuantities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListQuantityResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "library.getDecoderSchema": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A JSON Schema (2020-12). */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/schema+json": Record<string, never>;
                };
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "service.readiness": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseHealth"];
                };
            };
            400: components["responses"]["BadRequest"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "actionDefinitions.list": {
        parameters: {
            query?: {
                /** @description The supplier, which is the tenant of the request: another one is refused. */
                supplierUuid?: string;
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListActionDefinitionResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "actionDefinitions.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description An action to define. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ActionDefinitionCreateRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseActionDefinitionResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "actionDefinitions.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The action, as its supplier named it. */
                actionId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseActionDefinitionResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "actionDefinitions.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The action, as its supplier named it. */
                actionId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseVoid"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "actionDefinitions.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The action, as its supplier named it. */
                actionId: string;
            };
            cookie?: never;
        };
        /**
         * @description What to change; a member that is absent or null leaves the stored value alone, empty text
         *      removes it. The result is checked like a new action.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ActionDefinitionUpdateRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseActionDefinitionResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "agentReleases.list": {
        parameters: {
            query?: {
                /** @description Whether to leave out what is not offered; false when absent. */
                activeOnly?: boolean;
                /** @description Only releases of this channel, such as `stable` or `beta`. */
                channel?: string;
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListAgentReleaseResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "agentReleases.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The release. */
                releaseUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAgentReleaseResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "updatePolicies.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListAgentUpdatePolicyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "updatePolicies.put": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description An update policy. It replaces the policy of the same scope and target. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateAgentUpdatePolicyRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAgentUpdatePolicyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "updatePolicies.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The update policy. */
                policyUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAgentUpdatePolicyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "updatePolicies.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The update policy. */
                policyUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "updatePolicies.abortRollout": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The update policy. */
                policyUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAgentUpdatePolicyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "updatePolicies.haltRollout": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The update policy. */
                policyUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAgentUpdatePolicyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "updatePolicies.resumeRollout": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The update policy. */
                policyUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAgentUpdatePolicyResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "apiKeys.list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListApiKeyListResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "apiKeys.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description An API key to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApiKeyCreateRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseApiKeyCreateResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "apiKeys.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the API key. */
                apiKeyId: number;
            };
            cookie?: never;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApiKeyUpdateRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseApiKeyListResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "apiKeys.deactivate": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the API key. */
                apiKeyId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseVoid"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "apps.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListAppResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "apps.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description An app to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["AppCreateRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAppResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "apps.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The app. */
                appUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAppResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "apps.listReleases": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path: {
                /** @description The app. */
                appUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListAppReleaseResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "apps.createRelease": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The app. */
                appUuid: string;
            };
            cookie?: never;
        };
        /** @description A signed release of an app. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["AppReleaseCreateRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAppReleaseResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "auditLogs.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 0; 0 when absent. A page starts at record 100,000 at the latest, of the audit log at 5,000. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description The one field that the list is sorted by, and the direction: `createdAt,asc` or `createdAt,desc` for lists of what was created, `receivedAt,asc` or `receivedAt,desc` for lists of what was received, `startedAt,asc` or `startedAt,desc` for deliveries. */
                sort?: string;
                /** @description Only this action, such as `hub.update`. */
                action?: string;
                /** @description Only changes by this kind of actor. */
                actorType?: components["schemas"]["ActorType"];
                /** @description Only changes by this user or hub. */
                actorUuid?: string;
                /** @description Only changes with this API key. */
                apiKeyId?: number;
                /** @description Only entries written at this time or later. */
                from?: string;
                /** @description Only changes of this object. */
                objectId?: string;
                /** @description Only changes of this type of object: the first half of an action, such as `hub`. */
                objectType?: string;
                /** @description Only entries written before this time. */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePageAuditLogResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "billing.getBalance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBillingAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["ServiceUnavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    "billing.getChargeSettings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseChargeSettings"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "billing.putChargeSettings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseChargeSettings"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "billing.getEntitlement": {
        parameters: {
            query?: {
                /** @description The tenant of the request; another one is refused. */
                tenantUuid?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBillingAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["ServiceUnavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    "billing.listTransactions": {
        parameters: {
            query?: {
                /** @description `createdAt` of the last transaction that was received; the newest ones when absent. */
                cursor?: string;
                /** @description Transactions in an answer: 50 when absent. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBillingAnswer"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            502: components["responses"]["BadGateway"];
            503: components["responses"]["ServiceUnavailable"];
            504: components["responses"]["GatewayTimeout"];
        };
    };
    "bleDeliveries.query": {
        parameters: {
            query?: {
                /** @description The number of the page, from 0; 0 when absent. A page starts at record 100,000 at the latest, of the audit log at 5,000. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description The one field that the list is sorted by, and the direction: `createdAt,asc` or `createdAt,desc` for lists of what was created, `receivedAt,asc` or `receivedAt,desc` for lists of what was received, `startedAt,asc` or `startedAt,desc` for deliveries. */
                sort?: string;
                /** @description Only those that began at this time or later. */
                from?: string;
                /** @description Only those with this outcome. */
                status?: components["schemas"]["DeliveryOutcome"];
                /** @description Only those that began before this time. */
                to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePageBleDeliveryResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bleEvents.query": {
        parameters: {
            query?: {
                /** @description The number of the page, from 0; 0 when absent. A page starts at record 100,000 at the latest, of the audit log at 5,000. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description The one field that the list is sorted by, and the direction: `createdAt,asc` or `createdAt,desc` for lists of what was created, `receivedAt,asc` or `receivedAt,desc` for lists of what was received, `startedAt,asc` or `startedAt,desc` for deliveries. */
                sort?: string;
                /** @description Only events with this delivery status. */
                deliveryStatus?: components["schemas"]["DeliveryStatus"];
                /** @description Only events of this device. */
                deviceInstanceId?: number;
                /** @description Only events received at this time or later. */
                from?: string;
                /** @description Only events of this hub. */
                hubUuid?: string;
                /** @description Only events with this processing status. */
                processingStatus?: components["schemas"]["ProcessingStatus"];
                /** @description Only events received before this time. */
                to?: string;
                /**
                 * @description `receptions`, which is meant when absent: each event as a hub received it. `observations`:
                 *      events of one frame, heard by several hubs, as one.
                 */
                view?: components["schemas"]["BleEventView"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePageBleEventResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bleEvents.getDetail": {
        parameters: {
            query?: {
                /** @description Whether to include the event exactly as the hub sent it. */
                includeRaw?: boolean;
            };
            header?: never;
            path: {
                /** @description The id of the event. */
                bleEventId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBleEventDetailResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bleEvents.queryRuns": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the event. */
                bleEventId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListBleProcessingRunResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bleEvents.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description Only events of this device. */
                deviceInstanceId?: number;
                /** @description Only events received at this time or later. */
                from?: string;
                /** @description Only events of this hub. */
                hubUuid?: string;
                /** @description Only events with this processing status. */
                processingStatus?: components["schemas"]["ProcessingStatus"];
                /** @description Only events received before this time. */
                to?: string;
                /**
                 * @description `receptions`, which is meant when absent: each event as a hub received it. `observations`:
                 *      events of one frame, heard by several hubs, as one.
                 */
                view?: components["schemas"]["BleEventView"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListBleEventResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bleEvents.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the event. */
                bleEventId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBleEventResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bleEvents.listRuns": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the event. */
                bleEventId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListBleProcessingRunResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bleReprocess.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Which events to read again. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReprocessRequest"];
            };
        };
        responses: {
            /** @description What would change. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseReprocessPreviewResponse"];
                };
            };
            /** @description Accepted as background work. */
            202: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseReprocessTaskResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "bleReprocess.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The task that reads events again. */
                taskId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseReprocessResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bleRoute.get": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBleRouteConfigResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bleRoute.put": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A whole route. It replaces the one before. A member that is not known is an error. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["BleRouteConfigRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBleRouteConfigResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "unknownAdvertisers.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description Only advertisers that this hub received. */
                hubUuid?: string;
                /** @description Part of the name or the address, in any case. */
                q?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListUnknownAdvertiserResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "consentRecords.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description The supplier, which is the tenant of the request: another one is refused. */
                supplierUuid?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListConsentRecordResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "consentSettings.get": {
        parameters: {
            query?: {
                /** @description The supplier, which is the tenant of the request: another one is refused. */
                supplierUuid?: string;
                /** @description The version; the one in force when absent. */
                version?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseConsentSettingResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "consentSettings.put": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description What users are to be asked for. A version that somebody has granted keeps its text, its URL and
         *      its purposes.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConsentSettingRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseConsentSettingResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "dashboard.summary": {
        parameters: {
            query?: {
                /** @description Minutes to look back: 60 when absent; below 1 is read as 1, above 1440 as 1440. */
                windowMinutes?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDashboardSummary"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "pipelines.list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListPipelineConfigResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "pipelines.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A pipeline to create. A member that is not known is an error. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreatePipelineRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePipelineConfigResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "pipelines.transpile": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": unknown;
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseTranspileResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "pipelines.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePipelineConfigResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "pipelines.replace": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        /** @description A pipeline to create. A member that is not known is an error. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdatePipelineRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePipelineConfigResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "pipelines.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "pipelines.compare": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        /** @description A draft, and the stored events to try it on. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CompareRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseCompareResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "pipelines.listDeliveries": {
        parameters: {
            query?: {
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                limit?: number;
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Only those that began at this time or later. */
                from?: string;
                /** @description Only those with this outcome. */
                status?: components["schemas"]["DeliveryOutcome"];
                /** @description Only those that began before this time. */
                to?: string;
            };
            header?: never;
            path: {
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListBleDeliveryResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deadLetters.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path: {
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListDlqMessageResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deadLetters.retrySome": {
        parameters: {
            query?: {
                /**
                 * @description The revision that makes the message: `original`, the one that made it before, or `current`,
                 *      the one in force. `current` when absent.
                 */
                revision?: components["schemas"]["RetryRevision"];
            };
            header?: never;
            path: {
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        /** @description Which dead letters are delivered again. */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RetryRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseRetryResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "deadLetters.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the dead letter. */
                dlqId: number;
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deadLetters.retry": {
        parameters: {
            query?: {
                /**
                 * @description The revision that makes the message: `original`, the one that made it before, or `current`,
                 *      the one in force. `current` when absent.
                 */
                revision?: components["schemas"]["RetryRevision"];
            };
            header?: never;
            path: {
                /** @description The id of the dead letter. */
                dlqId: number;
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseVoid"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "pipelines.pause": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePipelineConfigResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "pipelineReplays.begin": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        /** @description Events to send once more. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ReplayRequest"];
            };
        };
        responses: {
            /** @description Accepted as background work. */
            202: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseReplayStartedResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "pipelineReplays.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path: {
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListReplayResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "pipelineReplays.cancel": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The pipeline. */
                pipelineUuid: string;
                /** @description The replay. */
                replayUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "pipelines.resume": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        /** @description Where a pipeline goes on. */
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ResumeRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePipelineConfigResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "pipelines.rotateSecret": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePipelineConfigResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "pipelines.testRun": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The pipeline. */
                pipelineUuid: string;
            };
            cookie?: never;
        };
        /**
         * @description What to try: the saved pipeline, but for the parts that are given, on some events. A member that
         *      is not known is an error.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["PipelineTestRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePipelineTestResult"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "deviceCatalog.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListDeviceCatalogResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceCatalog.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A device model to create. What is absent comes from the template, if there is one. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateDeviceRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceCatalogResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "deviceCatalog.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The device model. */
                deviceUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceCatalogResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceCatalog.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The device model. */
                deviceUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceCatalog.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The device model. */
                deviceUuid: string;
            };
            cookie?: never;
        };
        /**
         * @description What to change; a member that is absent or null leaves the stored value alone, empty text
         *      removes it.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateDeviceRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceCatalogResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "deviceIdentifiers.list": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The device model. */
                deviceUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListDeviceMatchIdentifierResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceIdentifiers.create": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The device model. */
                deviceUuid: string;
            };
            cookie?: never;
        };
        /** @description An identifier to create: several `conditions`, or the members of a single one. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateDeviceMatchIdentifierRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceMatchIdentifierResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "deviceIdentifiers.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The device model. */
                deviceUuid: string;
                /** @description The id of the identifier. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceIdentifiers.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The device model. */
                deviceUuid: string;
                /** @description The id of the identifier. */
                id: number;
            };
            cookie?: never;
        };
        /**
         * @description What to change; a member that is absent or null leaves the stored value alone, empty text
         *      removes it. Other conditions are another identifier.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateDeviceMatchIdentifierRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceMatchIdentifierResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "deviceProtocols.list": {
        parameters: {
            query?: {
                /** @description Only of this device model. */
                deviceUuid?: string;
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListDeviceProtocolResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceProtocols.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A protocol to create. It is compiled, and its tests are run, before it is stored. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateDeviceProtocolRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceProtocolResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "deviceCatalog.getOfProtocols": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The device model. */
                deviceUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceCatalogResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceProtocols.testRun": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A protocol to try. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeviceProtocolTestRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceProtocolTestResult"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "deviceProtocols.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the protocol. */
                deviceProtocolId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceProtocolResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceProtocols.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the protocol. */
                deviceProtocolId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceProtocols.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the protocol. */
                deviceProtocolId: number;
            };
            cookie?: never;
        };
        /**
         * @description What to change; a member that is absent or null leaves the stored value alone. The result is
         *      compiled and tested like a new protocol.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateDeviceProtocolRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceProtocolResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "deviceUis.list": {
        parameters: {
            query?: {
                /** @description Only of this device model. */
                deviceUuid?: string;
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListDeviceUiResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceUis.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A form to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateDeviceUiRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceUiResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "deviceUis.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the UI schema. */
                deviceUiId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceUiResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceUis.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the UI schema. */
                deviceUiId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceUis.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the UI schema. */
                deviceUiId: number;
            };
            cookie?: never;
        };
        /**
         * @description What to change; a member that is absent or null leaves the stored value alone, an empty locale
         *      removes it.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateDeviceUiRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceUiResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "deviceVersions.list": {
        parameters: {
            query?: {
                /** @description Only of this device model. */
                deviceUuid?: string;
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListDeviceVersionResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceVersions.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A version to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateDeviceVersionRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceVersionResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "deviceVersions.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The version of a device model. */
                deviceVersionUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceVersionResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceVersions.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The version of a device model. */
                deviceVersionUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceVersions.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The version of a device model. */
                deviceVersionUuid: string;
            };
            cookie?: never;
        };
        /**
         * @description What to change; a member that is absent or null leaves the stored value alone, empty text
         *      removes it.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateDeviceVersionRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceVersionResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "devices.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description Only devices with this status. */
                activationStatus?: components["schemas"]["ActivationStatus"];
                /** @description Only devices of this model. */
                deviceUuid?: string;
                /** @description Only devices that this hub hears best. */
                hubUuid?: string;
                /** @description Only devices that are online, or that are not. */
                online?: boolean;
                /** @description Part of the name, the address or the serial number, in any case. */
                q?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListDeviceInstanceResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "devices.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description A device to register. Without a beacon, an identity resolving key or an address, nothing that is
         *      received is ever taken for it.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateDeviceInstanceRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceInstanceResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "devices.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceInstanceResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "devices.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "devices.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        /**
         * @description What to change of a device. A member that is absent leaves the stored value alone; null removes
         *      it.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateDeviceInstanceRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceInstanceResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "devices.activate": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceInstanceResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceCommands.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListDeviceCommandResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceCommands.create": {
        parameters: {
            query?: {
                /** @description Seconds to hold the request until the command has ended; 10 when absent. */
                wait?: number;
            };
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        /** @description What a device shall do. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["DeviceCommandRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceCommandResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "deviceCommands.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The command. */
                commandUuid: string;
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceCommandResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "devices.listReceptions": {
        parameters: {
            query?: {
                /** @description Where it begins; a day before `to` when absent. */
                from?: string;
                /** @description Where it ends, not included; now when absent. */
                to?: string;
            };
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListDeviceReceptionsResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "devices.retire": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceInstanceResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "devices.listSensorData": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description Answers buckets of this length instead, all on one page: 10s to 1d, such as `30s`, `5m`, `1h` or `1d`. They begin at multiples of it since 1970. */
                every?: string;
                /** @description Only values observed at this time or later. In buckets, when absent: as many before `to` as 500 buckets last, but a day at least, and 4,999 buckets at most. */
                from?: string;
                /** @description Only this quantity, or one of several as `quantity[index]`. */
                quantity?: string;
                /** @description Only values observed before this time; until now when absent. */
                to?: string;
            };
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListSensorDataResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "devices.suspend": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceInstanceResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "devices.getTimeline": {
        parameters: {
            query?: {
                /** @description Where it begins; a day before `to` when absent. */
                from?: string;
                /** @description Where it ends, not included; now when absent. */
                to?: string;
            };
            header?: never;
            path: {
                /** @description The id of the device. */
                deviceInstanceId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListTimelinePeriodResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "downloads.getAssetUrl": {
        parameters: {
            query: {
                /** @description The id of the file, from `GET /tenant/downloads/manifest`. */
                assetId: number;
                /** @description What the file is for. */
                category: components["schemas"]["ReleaseCategory"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAssetUrl"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "downloads.getManifest": {
        parameters: {
            query?: {
                /** @description The release channel, such as `stable` or `beta`; `stable` when absent. */
                channel?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDownloadManifest"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "externalEndpoints.list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListExternalEndpointResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "externalEndpoints.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A server of the tenant. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ExternalEndpointRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseExternalEndpointResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "externalEndpoints.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the external endpoint. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseExternalEndpointResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "externalEndpoints.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the external endpoint. */
                id: string;
            };
            cookie?: never;
        };
        /** @description A server of the tenant. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ExternalEndpointRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseExternalEndpointResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "externalEndpoints.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the external endpoint. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeletedExternalEndpoint"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "externalEndpoints.verify": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the external endpoint. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseExternalEndpointResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "floorPlans.list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListFloorPlanResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "floorPlans.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A new floor plan. Its image is put afterwards. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["FloorPlanCreateRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseFloorPlanResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "floorPlans.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the floor plan. */
                floorPlanUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseFloorPlanResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "floorPlans.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the floor plan. */
                floorPlanUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "floorPlans.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the floor plan. */
                floorPlanUuid: string;
            };
            cookie?: never;
        };
        /** @description A change of a floor plan. What is absent stays. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["FloorPlanUpdateRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseFloorPlanResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "floorPlans.getImage": {
        parameters: {
            query?: never;
            header?: {
                /** @description The `ETag` of the response that the client has; the response is 304 if it is unchanged. */
                "If-None-Match"?: string;
            };
            path: {
                /** @description The id of the floor plan. */
                floorPlanUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The image. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "image/jpeg": string;
                    "image/png": string;
                    "image/webp": string;
                };
            };
            /** @description The client has the current response. */
            304: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    ETag: components["headers"]["ETag"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "floorPlans.putImage": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the floor plan. */
                floorPlanUuid: string;
            };
            cookie?: never;
        };
        /** @description A PNG, JPEG or WebP image of at most 2 MiB, whatever `Content-Type` says. */
        requestBody: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseFloorPlanResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "hubJobs.page": {
        parameters: {
            query?: {
                /** @description The number of the page, from 0; 0 when absent. A page starts at record 100,000 at the latest, of the audit log at 5,000. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description The one field that the list is sorted by, and the direction: `createdAt,asc` or `createdAt,desc` for lists of what was created, `receivedAt,asc` or `receivedAt,desc` for lists of what was received, `startedAt,asc` or `startedAt,desc` for deliveries. */
                sort?: string;
            };
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePageHubJobResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubJobs.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
                /** @description The job. */
                jobUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseHubJobDetailResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubJobs.pageEvents": {
        parameters: {
            query?: {
                /** @description The number of the page, from 0; 0 when absent. A page starts at record 100,000 at the latest, of the audit log at 5,000. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description The one field that the list is sorted by, and the direction: `createdAt,asc` or `createdAt,desc` for lists of what was created, `receivedAt,asc` or `receivedAt,desc` for lists of what was received, `startedAt,asc` or `startedAt,desc` for deliveries. */
                sort?: string;
            };
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
                /** @description The job. */
                jobUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePageHubJobEventResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubLogs.page": {
        parameters: {
            query?: {
                /** @description The number of the page, from 0; 0 when absent. A page starts at record 100,000 at the latest, of the audit log at 5,000. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description The one field that the list is sorted by, and the direction: `createdAt,asc` or `createdAt,desc` for lists of what was created, `receivedAt,asc` or `receivedAt,desc` for lists of what was received, `startedAt,asc` or `startedAt,desc` for deliveries. */
                sort?: string;
                /** @description Only records received at this time or later. */
                from?: string;
                /** @description Only records received before this time. */
                to?: string;
            };
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePageHubLogResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubTelemetry.page": {
        parameters: {
            query?: {
                /** @description The number of the page, from 0; 0 when absent. A page starts at record 100,000 at the latest, of the audit log at 5,000. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description The one field that the list is sorted by, and the direction: `createdAt,asc` or `createdAt,desc` for lists of what was created, `receivedAt,asc` or `receivedAt,desc` for lists of what was received, `startedAt,asc` or `startedAt,desc` for deliveries. */
                sort?: string;
                /** @description Only records received at this time or later. */
                from?: string;
                /** @description Only records received before this time. */
                to?: string;
            };
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponsePageHubTelemetryResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubs.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description Part of the label, in any case. */
                label?: string;
                /** @description Part of the label, the host name or the hardware identity, in any case. */
                q?: string;
                /** @description Only hubs that were last seen at this time or later. */
                seenFrom?: string;
                /** @description Only hubs that were last seen before this time, or never. */
                seenTo?: string;
                /** @description Only hubs with this status. */
                status?: components["schemas"]["HubStatus"];
                /** @description The version of the agent: `1.4` for it and those that begin with it, or `<1.4`, `<=1.4.2`, `>1.4`, `>=1.4`. */
                version?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListHubSummaryResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "claimCodes.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListClaimCodeResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "claimCodes.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A claim code to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ClaimCodeGenerateRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseClaimCodeResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "claimCodes.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The claim code, whose case, dashes and blanks are ignored, or its `id`. */
                claimCode: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubs.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseHubDetailResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubs.release": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            204: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubs.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        /**
         * @description What to change; a member that is absent or null leaves the stored value alone, empty text
         *      removes it.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["HubUpdateRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseHubDetailResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "hubs.listAdapters": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListAdapterView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubs.updateAdapter": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The address of the adapter, such as `00:1A:7D:DA:71:13`. */
                address: string;
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        /** @description What to change about an adapter; a member that is absent or null leaves the stored value alone. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["HubAdapterUpdateRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseAdapterView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "hubApps.list": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListHubInstalledAppResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubs.listBundles": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListHubBundleResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubApps.listInstalled": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListInstalledAppView"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubJobs.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListHubJobResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubJobs.installApp": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        /** @description What to install. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["AppInstallRequest"];
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseHubJobUuid"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "hubJobs.removeApp": {
        parameters: {
            query: {
                /** @description The app to remove. */
                appUuid: string;
            };
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseHubJobUuid"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubJobs.cancel": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The job. */
                hubJobUuid: string;
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseHubJobResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubLogs.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description Only records received at this time or later. */
                from?: string;
                /** @description Only records received before this time. */
                to?: string;
            };
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListHubLogResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "setupDelegations.list": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListSetupDelegationResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "setupDelegations.create": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        /**
         * @description The person to delegate a hub to, who need not have an account yet: exactly one of `userUuid` and
         *      `email`.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["SetupDelegationRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSetupDelegationResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "setupDelegations.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
                /** @description The id of the delegation. */
                id: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseVoid"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "hubTelemetry.list": {
        parameters: {
            query?: {
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
                /** @description Only records received at this time or later. */
                from?: string;
                /** @description Only records received before this time. */
                to?: string;
            };
            header?: never;
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListHubTelemetryResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceManuals.list": {
        parameters: {
            query?: {
                /** @description Only of this device model. */
                deviceUuid?: string;
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListDeviceManualResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceManuals.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A manual to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateDeviceManualRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceManualResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "deviceManuals.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the manual. */
                deviceManualId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceManualResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceManuals.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the manual. */
                deviceManualId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "deviceManuals.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the manual. */
                deviceManualId: number;
            };
            cookie?: never;
        };
        /**
         * @description What to change; a member that is absent or null leaves the stored value alone, an empty locale
         *      removes it. Another format needs its text or URL, and removes that of the format before.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateDeviceManualRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDeviceManualResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "notificationSettings.list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListNotificationSettingResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "notificationSettings.put": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description What the tenant wants to be told, and how. There is one setting for each type and channel. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpsertNotificationSettingRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseNotificationSettingResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "notificationSettings.putMany": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpsertNotificationSettingRequest"][];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListNotificationSettingResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "personas.list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseTenantPersonasResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "invitations.revoke": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the invitation. */
                invitationId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "invitations.resend": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The id of the invitation. */
                invitationId: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseTenantInvitationResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "personas.invite": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description An e-mail address to invite, or a persona to add at once: exactly one of them. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["PersonaInviteRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseInviteResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "personas.listInviteCandidates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListInviteCandidate"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "personas.remove": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The persona of the member in the tenant. */
                personaUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "personas.changeRole": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The persona of the member in the tenant. */
                personaUuid: string;
            };
            cookie?: never;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdatePersonaRoleRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseTenantMemberResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "simulator.listPresets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListSimulationPreset"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "simulator.run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description An event to simulate: `preset` or `event`. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["SimulationRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSimulationResult"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "simulator.stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Events to simulate: `events`, or `preset` or `event` with `count`. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["StreamSimulationRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListSimulationResult"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "streams.bleEvents": {
        parameters: {
            query?: {
                /** @description Only events of this address. */
                address?: string;
                /** @description Only events of this device. */
                deviceInstanceId?: number;
                /** @description Of each device, and of each address that is no device's, one event in this time: the first. 100 milliseconds to 1 hour, as `500ms`, `2s` or `1m`. */
                every?: string;
                /** @description Only events of this hub. */
                hubUuid?: string;
                /** @description Only events that were received at least this strongly, in dBm; of a window, the strongest signal counts. */
                minRssi?: number;
                /**
                 * @description `receptions`, which is meant when absent, or `observations`: of a frame that several hubs
                 *      received, only the first reception.
                 */
                view?: components["schemas"]["BleEventView"];
            };
            header?: {
                /** @description The id of the last event that the client has: the stream begins after it. Without it, the stream begins with what is received from now on. */
                "Last-Event-ID"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Server-sent events, as records are stored. The schema is that of one event; `data` is sent as one line of JSON. A comment `ping` comes every 20 seconds; of a filtered stream with the id up to which nothing is left to send. The stream ends after 5 minutes; resume it with `Last-Event-ID`. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Accel-Buffering": components["headers"]["X-Accel-Buffering"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": {
                        data: components["schemas"]["BleEventResponse"];
                        /**
                         * @description The name of the event.
                         * @enum {string}
                         */
                        event: "ble_event";
                        /**
                         * Format: date-time
                         * @description When the service received the record.
                         */
                        id: string;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "streams.hubJobEvents": {
        parameters: {
            query?: never;
            header?: {
                /** @description The id of the last event that the client has: the stream begins after it. Without it, the stream begins with what is received from now on. */
                "Last-Event-ID"?: string;
            };
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Server-sent events, as records are stored. The schema is that of one event; `data` is sent as one line of JSON. A comment `ping` comes every 20 seconds; of a filtered stream with the id up to which nothing is left to send. The stream ends after 5 minutes; resume it with `Last-Event-ID`. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Accel-Buffering": components["headers"]["X-Accel-Buffering"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": {
                        data: components["schemas"]["HubJobEventResponse"];
                        /**
                         * @description The name of the event.
                         * @enum {string}
                         */
                        event: "hub_job_event";
                        /**
                         * Format: date-time
                         * @description When the service received the record.
                         */
                        id: string;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "streams.hubLogs": {
        parameters: {
            query?: never;
            header?: {
                /** @description The id of the last event that the client has: the stream begins after it. Without it, the stream begins with what is received from now on. */
                "Last-Event-ID"?: string;
            };
            path: {
                /** @description The hub. */
                hubUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Server-sent events, as records are stored. The schema is that of one event; `data` is sent as one line of JSON. A comment `ping` comes every 20 seconds; of a filtered stream with the id up to which nothing is left to send. The stream ends after 5 minutes; resume it with `Last-Event-ID`. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Accel-Buffering": components["headers"]["X-Accel-Buffering"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": {
                        data: components["schemas"]["HubLogResponse"];
                        /**
                         * @description The name of the event.
                         * @enum {string}
                         */
                        event: "hub_log";
                        /**
                         * Format: date-time
                         * @description When the service received the record.
                         */
                        id: string;
                    };
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bundles.list": {
        parameters: {
            query?: {
                /** @description Bundles with this status alone. */
                status?: components["schemas"]["BundleStatus"];
                /** @description The number of the page, from 1; 1 when absent. 0 is read as 1. A page starts at item 100,000 at the latest. */
                page?: number;
                /** @description Items on a page: 20 when absent, at most 100; more is read as 100. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One page of the list. `X-Total-Count` has the length of the whole list, `Link` the other pages. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Link: components["headers"]["Link"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-Total-Count": components["headers"]["X-Total-Count"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListBundleResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bundles.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A bundle to create. It has no parts yet. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateBundleRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBundleResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "bundles.get": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The bundle. */
                bundleUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBundleResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bundles.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The bundle. */
                bundleUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bundles.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The bundle. */
                bundleUuid: string;
            };
            cookie?: never;
        };
        /** @description Changes of a draft. An absent or null member stays unchanged. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateBundleRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBundleResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "bundles.apps": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The bundle. */
                bundleUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListBundleAppResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bundles.putApps": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The bundle. */
                bundleUuid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BundleAppRefRequest"][];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListBundleAppResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "bundles.archive": {
        parameters: {
            query?: {
                /** @description KEEP when absent. REMOVE is done by and by. */
                atHubs?: components["schemas"]["BundleAtHubs"];
            };
            header?: never;
            path: {
                /** @description The bundle. */
                bundleUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBundleResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bundles.devices": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The bundle. */
                bundleUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListBundleDeviceResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bundles.putDevices": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The bundle. */
                bundleUuid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BundleDeviceRefRequest"][];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListBundleDeviceResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "bundles.pipelines": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The bundle. */
                bundleUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListUuid"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "bundles.putPipelines": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The bundle. */
                bundleUuid: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": string[];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListUuid"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "bundles.publish": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The bundle. */
                bundleUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseBundleResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "supplierOauthConfig.get": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSupplierOauthConfigResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "supplierOauthConfig.put": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * @description The configuration of a supplier's authorization server, and of the system that is told about
         *      registrations. It replaces the one before as a whole; only a secret that is absent keeps its
         *      value.
         */
        requestBody: {
            content: {
                "application/json": components["schemas"]["SupplierOauthConfigRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSupplierOauthConfigResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "supplierOauthConfig.delete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseSupplierOauthConfigDeleted"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "tenants.list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListTenantResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "tenants.create": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A tenant to create. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateTenantRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseTenantResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "tenants.delete": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tenant. */
                tenantUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "tenants.update": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tenant. */
                tenantUuid: string;
            };
            cookie?: never;
        };
        /** @description What to change; a member that is absent or null leaves the stored value alone. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["UpdateTenantRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseTenantResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "tenants.accept": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tenant. */
                tenantUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseTenantResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "tenants.listMembers": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tenant. */
                tenantUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListTenantMemberResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "tenants.grantAccess": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tenant. */
                tenantUuid: string;
            };
            cookie?: never;
        };
        /** @description A member to add, or another role for one. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["GrantAccessRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseTenantMemberResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "tenants.removeMember": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tenant. */
                tenantUuid: string;
                /** @description The persona of the member in the tenant. */
                targetPersonaUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; no content. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "transfers.initiate": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tenant. */
                tenantUuid: string;
            };
            cookie?: never;
        };
        /** @description Who the tenant is offered to: a person or another tenant, exactly one of them. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["InitiateTransferRequest"];
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseTenantTransferRequestResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    "diagnostics.test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDiagnosticsResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "transfers.incoming": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListTenantTransferRequestResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "transfers.outgoing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseListTenantTransferRequestResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "transfers.accept": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The transfer request. */
                requestUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseTenantTransferRequestResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "transfers.cancel": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The transfer request. */
                requestUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseTenantTransferRequestResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "transfers.reject": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The transfer request. */
                requestUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseTenantTransferRequestResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    "diagnostics.testUnit": {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The tenant. */
                tenantUuid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    "Cache-Control": components["headers"]["Cache-Control"];
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiResponseDiagnosticsResponse"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
}
