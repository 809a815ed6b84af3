import type { IncomingMessage } from 'node:http'
import type { Call } from '../request/call.ts'
import type { Owners } from '../request/owners.ts'
import { heldAfterReading, heldBytes, readBody } from './body.ts'

/**
 * Reads the JSON body of a request within the limits of its route. A thread parses a large body and takes the files out
 * of it.
 */
export async function readJson(
  call: Call,
  { config, cpu, admission }: Pick<Owners, 'admission' | 'config' | 'cpu'>,
): Promise<unknown> {
  const { route } = call
  const { json_body: maxUsual, chat_body: maxLarge } = config.limits
  if (route.largeBody) call.releaseBody = admission.holdBody(heldBytes(call.req))
  const bytes = await readBody(call.req, route.largeBody ? Math.max(maxUsual, maxLarge) : maxUsual)
  const size = bytes.length
  const hash = call.req.headers['idempotency-key'] !== undefined
  const bounds = { ...config.limits, keys: Math.max(config.limits.keys, route.members ?? 0) }
  const read = await cpu.readBody(bytes, bounds, {
    hash,
    files: size > maxUsual,
    asText: route.bodyTexts,
  })
  call.releaseBody(heldAfterReading(size))
  call.bodyHash = read.hash
  call.inline = read.inline
  call.texts = read.texts
  return read.value
}

/**
 * Changes the content type of a form to JSON: Ollama's documentation uses `curl -d '{…}'`, which sends JSON with the type
 * of a form. A request with `Origin` is unchanged, because browsers send it with every form.
 */
export function nameAsJson({ headers }: IncomingMessage): void {
  if (headers.origin === undefined && headers['content-type'] === curlType) headers['content-type'] = 'application/json'
}

const curlType = 'application/x-www-form-urlencoded'
