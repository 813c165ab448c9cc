"""A mail server for tests. It takes mail only over TLS and from whoever logs in, unless configured otherwise, and refuses some by the recipient's name:
`refused-...` for good (550), `later-...` the first time (451), `content-...` for good once it has read the mail (554)."""

import argparse
import asyncio
import email
import email.policy
import json
import ssl

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword


def say(**line):
    print(json.dumps(line), flush=True)


class Handler:
    def __init__(self):
        self.put_off = set()

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("refused-"):
            say(refused=address)
            return "550 5.1.1 no such mailbox"
        if address.startswith("later-") and address not in self.put_off:
            self.put_off.add(address)
            return "451 4.7.1 greylisted, come back later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        if any(address.startswith("content-") for address in envelope.rcpt_tos):
            say(refused=envelope.rcpt_tos[0])
            return "554 5.7.1 this looks like advertising"
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        parts = {part.get_content_type(): part.get_content() for part in mail.walk() if not part.is_multipart()}
        say(
            sender=envelope.mail_from,
            recipients=envelope.rcpt_tos,
            encrypted=session.ssl is not None,
            user=(session.auth_data.login.decode() if session.auth_data else None),
            kind=mail.get_content_type(),
            headers={name.lower(): str(value) for name, value in mail.items()},
            text=parts.get("text/plain", ""),
            html=parts.get("text/html", ""),
        )
        return "250 OK"


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--cert", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--user", required=True)
    parser.add_argument("--password", required=True)
    parser.add_argument("--plain", action="store_true", help="without TLS")
    options = parser.parse_args()

    def authenticate(server, session, envelope, mechanism, data):
        right = isinstance(data, LoginPassword) and (data.login.decode(), data.password.decode()) == (options.user, options.password)
        if not right:
            say(wrong_login=True)
        return AuthResult(success=right, handled=False, auth_data=data if right else None)

    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(options.cert, options.key)
    handler = Handler()

    def session():
        return SMTP(
            handler,
            hostname="localhost",
            enable_SMTPUTF8=False,
            tls_context=None if options.plain else tls,
            require_starttls=not options.plain,
            auth_require_tls=not options.plain,
            auth_required=True,
            authenticator=authenticate,
        )

    server = await asyncio.get_running_loop().create_server(session, host="127.0.0.1", port=options.port)
    say(listening=server.sockets[0].getsockname()[1], certificate=options.cert)
    await server.serve_forever()


asyncio.run(main())
