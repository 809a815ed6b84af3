import type { EngineProtocol } from './protocol.ts'

/** The route of vLLM for classifiers. */
export const classification: EngineProtocol = { name: 'openai-text', paths: { 'std/moderation': '/classify' } }

/**
 * The routes that OpenAI-style servers share for text, with those of vLLM for reranking and scoring. The records of the
 * text tasks write its requests (`prepare`) and read its answers (`shape`).
 */
export const openaiText: EngineProtocol = {
  name: 'openai-text',
  paths: {
    'std/chat-completion': '/v1/chat/completions',
    'std/completion': '/v1/completions',
    'std/embeddings': '/v1/embeddings',
    'std/rerank': '/v1/rerank',
    'std/score': '/v1/score',
  },
}
