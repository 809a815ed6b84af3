import type { EngineTraits } from '../../models/engine-traits.ts'

const options: Record<EngineTraits['streamUsage'], object> = {
  none: {},
  end: { stream_options: { include_usage: true } },
  continuous: { stream_options: { include_usage: true, continuous_usage_stats: true } },
  progress: { stream_options: { include_usage: true }, return_progress: true },
}

/** Returns request members that make the engine report usage as early as it can, because clients disconnect early. */
export const streamOptions = (how: EngineTraits['streamUsage']): object => options[how]

/**
 * Returns the members, as JSON text, that turn a request of a whole answer into one of a stream; undefined if the engine
 * reports usage only at the end of a stream too.
 */
export const streamedMembers = (how: EngineTraits['streamUsage']): string | undefined =>
  how === 'continuous' || how === 'progress'
    ? JSON.stringify({ stream: true, ...streamOptions(how) }).slice(1, -1)
    : undefined

/** Adds such members to a JSON body. */
export function withMembers(body: string | Uint8Array, members: string): string | Uint8Array {
  if (typeof body === 'string') return `${body.slice(0, -1)},${members}}`
  return Buffer.concat([body.subarray(0, -1), Buffer.from(`,${members}}`)])
}
