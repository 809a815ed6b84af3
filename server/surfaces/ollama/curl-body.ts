import type { IncomingMessage } from 'node:http'
import type { Route } from '../../http/request/route.ts'

/**
 * Takes the body of a form as JSON below `/ollama`: the examples of Ollama's documentation are `curl -d '{…}'`, which names
 * the body a form. Browsers send `Origin` with every form, so a web page cannot use it.
 */
export function takeCurlBody({ headers }: IncomingMessage, { path }: Pick<Route, 'path'>): void {
  if (path.startsWith('/ollama/') && headers.origin === undefined && headers['content-type'] === curlType)
    headers['content-type'] = 'application/json'
}

const curlType = 'application/x-www-form-urlencoded'
