import type { IncomingMessage } from 'node:http'

const clientId = /^[A-Za-z0-9._:-]{1,128}$/

/** Returns the headers of every response, flat: the request id, and the client's own request id if it is valid. */
export function commonHeaders(req: IncomingMessage | undefined, requestId: string): string[] {
  const headers = ['x-request-id', requestId, 'x-content-type-options', 'nosniff']
  const given = req?.headers['x-client-request-id']
  if (typeof given === 'string' && clientId.test(given)) headers.push('x-client-request-id', given)
  return headers
}
