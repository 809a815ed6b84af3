import type { ClientExchange } from '../request/exchange.ts'

/** Whether a page of another site sent the request. Such a page that embeds or fetches these routes gets no content. */
export const isCrossSite = (exchange: ClientExchange) => exchange.req.headers['sec-fetch-site'] === 'cross-site'

/** Answers 403 to pages of other sites that embed or fetch the route; following a link to it is allowed. */
export const ownPage = (answer: (exchange: ClientExchange) => void | Promise<void>) => (exchange: ClientExchange) =>
  isCrossSite(exchange) && exchange.req.headers['sec-fetch-dest'] !== 'document'
    ? sendText(exchange, 403, '')
    : answer(exchange)

/** Answers with a text that is never cached. */
export const sendText = (exchange: ClientExchange, status: number, body: string) =>
  exchange.send(status, body, 'text/plain; charset=utf-8', ['cache-control', 'no-store'])
