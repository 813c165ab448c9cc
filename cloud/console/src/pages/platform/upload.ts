//! Uploads of files with progress, which fetch does not have.

import { Problem, problemIn } from '../../api/problem';

export function upload(to: string, file: File, progress: (share: number) => void): Promise<void> {
  // The policy of the console permits its own origin only, whatever the service's public name is.
  const { pathname, search } = new URL(to, location.origin);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('PUT', pathname + search);
    request.upload.onprogress = ({ loaded, total }) => progress(total ? loaded / total : 0);
    request.onload = () => {
      if (request.status >= 200 && request.status < 300) return resolve();
      let content: unknown;
      try {
        content = JSON.parse(request.responseText);
      } catch {
        content = undefined;
      }
      const problem = problemIn(new Response(null, { status: request.status }), content);
      reject(new Problem(problem.status, problem.code, problem.message, [{ field: 'file', message: problem.message }]));
    };
    request.onerror = () => reject(new Problem(0, 'UNREACHABLE', 'The upload was interrupted. Upload the file again within a day.'));
    request.send(file);
  });
}
