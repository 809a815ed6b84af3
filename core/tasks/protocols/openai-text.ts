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
