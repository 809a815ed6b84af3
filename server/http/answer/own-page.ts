import type { Call } from '../request/call.ts'

/** Whether a page of another site sent the request. Such a page that embeds or fetches these routes gets no content. */
export const isCrossSite = (call: Call) => call.req.headers['sec-fetch-site'] === 'cross-site'

/** Answers 403 to pages of other sites that embed or fetch the route; following a link to it is allowed. */
export const ownPage = (answer: (call: Call) => void) => (call: Call) =>
  isCrossSite(call) && call.req.headers['sec-fetch-dest'] !== 'document' ? sendText(call, 403, '') : answer(call)

/** Answers with a text that is never cached. */
export const sendText = (call: Call, status: number, body: string) =>
  call.send(status, body, 'text/plain; charset=utf-8', ['cache-control', 'no-store'])
