import { z } from 'zod'

/** URLs of a request of the slug API. */
export const requestUrls = {
  response_url: z.string().describe('Where to read the result.'),
  status_url: z.string().describe('Where to read the status.'),
  cancel_url: z.string().describe('Where to cancel the request (PUT or POST).'),
  stream_url: z.string().describe('Where to follow the status as server-sent events.'),
}
