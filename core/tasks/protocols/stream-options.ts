import type { EngineTraits } from '../../models/fleet.ts'

const wishes: Record<EngineTraits['streamUsage'], object> = {
  none: {},
  end: { stream_options: { include_usage: true } },
  continuous: { stream_options: { include_usage: true, continuous_usage_stats: true } },
  progress: { stream_options: { include_usage: true }, return_progress: true },
}

/** What a streamed request says so that its use is known, as early as the engine can tell it: streams are left early. */
export const streamOptions = (how: EngineTraits['streamUsage']): object => wishes[how]
