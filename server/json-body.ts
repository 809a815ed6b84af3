import { heldAfterReading, heldBytes, readBody } from './body.ts'
import type { Call } from './call.ts'
import type { Owners } from './owners.ts'

/**
 * The JSON body of a request as a value, as its route takes it; a large one is read in a thread, and what it may hold of
 * files is taken out of it there.
 */
export async function readJson(
  call: Call,
  { config, cpu, admission }: Pick<Owners, 'admission' | 'config' | 'cpu'>,
): Promise<unknown> {
  const { route } = call
  const { json_body: usual, chat_body: most } = config.limits
  if (route.largeBody) call.releaseBody = admission.holdBody(heldBytes(call.req))
  const bytes = await readBody(call.req, route.largeBody ? Math.max(usual, most) : usual)
  const size = bytes.length
  const hash = call.req.headers['idempotency-key'] !== undefined
  const bounds = { ...config.limits, keys: Math.max(config.limits.keys, route.members ?? 0) }
  const read = await cpu.readBody(bytes, bounds, {
    hash,
    files: size > usual,
    asText: route.bodyTexts,
  })
  call.releaseBody(heldAfterReading(size))
  call.bodyHash = read.hash
  call.inline = read.inline
  call.texts = read.texts
  return read.value
}
