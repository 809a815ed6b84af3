import { randomInt } from 'node:crypto'
import type { LlamaModel } from 'node-llama-cpp'
import { Failure } from '../../../core/failure.ts'
import { ulid } from '../../../core/ids.ts'
import { ChatRequest } from '../../../core/schemas/chat.ts'
import { failureOf } from '../../../core/schemas/issues.ts'
import { streamFrames, wholeAnswer } from './chat-answer.ts'
import { type FinishReason, type Generator, tokensOf } from './generate.ts'
import type { Reply } from './reply.ts'
import { answerLimit, checkSupported, samplingOf, stopsOf } from './sampling.ts'
import type { openTemplate } from './template.ts'
import type { Vocabulary } from './vocabulary.ts'

export interface ChatParts {
  id: string
  fingerprint: string
  model: LlamaModel
  vocabulary: Vocabulary
  render: ReturnType<typeof openTemplate>
  generator: Generator
  /** Tokens of one request, prompt and answer together. */
  context: number
}

/** A token stands for some characters; a prompt with more than this many for each that fits need not be counted. */
const mostCharactersPerToken = 64

/** Answers POST /v1/chat/completions. */
export function openChat(parts: ChatParts) {
  const { model, vocabulary, render, generator, context } = parts

  function promptOf(request: ChatRequest) {
    const stretches = render(request.messages, request.chat_template_kwargs ?? undefined)
    const characters = stretches.reduce((sum, stretch) => sum + stretch.text.length, 0)
    if (characters > context * mostCharactersPerToken)
      throw new Failure(
        'context_length_exceeded',
        `The messages have ${characters} characters, far more than the context length of this model, ${context} tokens. Shorten them.`,
        { param: 'messages' },
      )
    const prompt = tokensOf(model, stretches)
    if (prompt.length === 0)
      throw new Failure('invalid_value', 'The messages are empty after the chat template. Say something.', {
        param: 'messages',
      })
    return prompt
  }

  return async function chat(body: unknown, reply: Reply): Promise<void> {
    const checked = ChatRequest.safeParse(body)
    if (!checked.success) throw failureOf(checked.error, body)
    const request = checked.data
    checkSupported(request)
    const stops = stopsOf(request.stop)
    const sampling = samplingOf(request, vocabulary.size, randomInt(2 ** 32 - 1))
    const prompt = promptOf(request)
    const limit = answerLimit(prompt.length, context, request.max_completion_tokens ?? request.max_tokens)
    const head = {
      id: `chatcmpl-${ulid()}`,
      created: Math.floor(Date.now() / 1000),
      model: parts.id,
      fingerprint: parts.fingerprint,
    }

    const work = { prompt, sampling, limit, stops, signal: reply.signal }
    if (request.stream) {
      const frames = streamFrames(head, request.stream_options?.include_usage === true)
      let begun = false
      let last: FinishReason = 'stop'
      const { completionTokens, cachedTokens } = await generator.generate(work, ({ text, reason }) => {
        if (reason !== null) last = reason
        const opening = begun ? '' : frames.first()
        begun = true
        const part = opening + (text === '' ? '' : frames.text(text))
        return part === '' ? undefined : reply.write(part)
      })
      reply.end(frames.last(last, { promptTokens: prompt.length, completionTokens, cachedTokens }))
    } else {
      let whole = ''
      let last: FinishReason = 'stop'
      const { completionTokens, cachedTokens } = await generator.generate(work, ({ text, reason }) => {
        whole += text
        if (reason !== null) last = reason
      })
      reply.json(wholeAnswer(head, whole, last, { promptTokens: prompt.length, completionTokens, cachedTokens }))
    }
  }
}
