import type { EngineTraits } from '../../models/fleet.ts'

const options: Record<EngineTraits['streamUsage'], object> = {
  none: {},
  end: { stream_options: { include_usage: true } },
  continuous: { stream_options: { include_usage: true, continuous_usage_stats: true } },
  progress: { stream_options: { include_usage: true }, return_progress: true },
}

/** What a streamed request says so that its use is known, as early as the engine can tell it: streams are left early. */
export const streamOptions = (how: EngineTraits['streamUsage']): object => options[how]

/**
 * The members, as JSON text, that make of a request for a whole answer one for a stream; undefined where the engine says
 * what it used at the end only, of a stream too.
 */
export const streamedMembers = (how: EngineTraits['streamUsage']): string | undefined =>
  how === 'continuous' || how === 'progress'
    ? JSON.stringify({ stream: true, ...streamOptions(how) }).slice(1, -1)
    : undefined

/** Such a request. */
export function withMembers(body: string | Uint8Array, members: string): string | Uint8Array {
  if (typeof body === 'string') return `${body.slice(0, -1)},${members}}`
  return Buffer.concat([body.subarray(0, -1), Buffer.from(`,${members}}`)])
}
