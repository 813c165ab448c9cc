//! Images of plans: read with the credentials of the session, and made small enough to be stored.

import { api, content, data, type Schemas } from '../../api/client';

/** The most bytes that the service stores. */
const MAX_BYTES = 2 * 1024 * 1024;
/** Enough for a plan on a large screen. */
const MAX_SIDE = 2400;
export const TYPES = 'image/png,image/jpeg,image/webp';

/** The image as an address: the policy of the page permits `data:`, and no `blob:`. */
function asAddress(image: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error('The image could not be read.'));
    reader.readAsDataURL(image);
  });
}

export async function readImage(plan: Schemas['FloorPlanResponse'], signal: AbortSignal): Promise<string | null> {
  if (!plan.image) return null;
  const path = { floorPlanUuid: plan.floorPlanUuid };
  const answer = api.GET('/tenant/floor-plans/{floorPlanUuid}/image', { params: { path }, parseAs: 'blob', signal });
  return asAddress((await content(answer)) as unknown as Blob);
}

/** The file, or a smaller picture of it where it is too large to be stored. */
async function fitting(file: Blob): Promise<Blob> {
  if (file.size <= MAX_BYTES) return file;
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (!bitmap) return file;
  const canvas = document.createElement('canvas');
  for (let side = MAX_SIDE; side >= MAX_SIDE / 4; side /= 2) {
    const scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
    [canvas.width, canvas.height] = [Math.round(bitmap.width * scale), Math.round(bitmap.height * scale)];
    const context = canvas.getContext('2d');
    if (!context) break;
    // Transparent parts would become black.
    context.fillStyle = '#fff';
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    const smaller = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, 'image/jpeg', 0.85));
    if (smaller && smaller.size <= MAX_BYTES) return smaller;
  }
  return file;
}

export async function putImage(floorPlanUuid: string, file: Blob): Promise<Schemas['FloorPlanResponse']> {
  const body = await fitting(file);
  const answer = api.PUT('/tenant/floor-plans/{floorPlanUuid}/image', {
    params: { path: { floorPlanUuid } },
    // The description knows a file as text.
    body: body as unknown as string,
    bodySerializer: (bytes) => bytes,
    headers: { 'content-type': 'application/octet-stream' },
  });
  return data(answer);
}
