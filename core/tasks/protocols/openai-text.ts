import type { EngineTraits } from '../../models/engine-traits.ts'
import type { EngineProtocol } from './protocol.ts'

/** The route of vLLM for classifiers. */
export const classification: EngineProtocol = { name: 'openai-text', paths: { classify: '/classify' } }

/**
 * The routes that OpenAI-style servers share for text, with those of vLLM for reranking and scoring. The records of the
 * text tasks write its requests (`prepare`) and read its answers (`shape`).
 */
export const openaiText: EngineProtocol = {
  name: 'openai-text',
  paths: {
    chat: '/v1/chat/completions',
    complete: '/v1/completions',
    embed: '/v1/embeddings',
    rerank: '/v1/rerank',
    score: '/v1/score',
  },
}

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
