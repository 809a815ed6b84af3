import type { IncomingMessage } from 'node:http'

/**
 * Takes a body that is named a form for JSON: `curl -d '{…}'` names it so, and the examples of Ollama's documentation are
 * such commands. Browsers send `Origin` with every form, so a web page cannot use it.
 */
export function nameAsJson({ headers }: IncomingMessage): void {
  if (headers.origin === undefined && headers['content-type'] === curlType) headers['content-type'] = 'application/json'
}

const curlType = 'application/x-www-form-urlencoded'
