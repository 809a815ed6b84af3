import { randomInt } from 'node:crypto'
import type { LlamaModel, TokenBias } from 'node-llama-cpp'
import { Failure } from '../../../core/failure.ts'
import { ulid } from '../../../core/ids.ts'
import { ChatRequest } from '../../../core/schemas/chat.ts'
import { failureOf } from '../../../core/schemas/issues.ts'
import { streamFrames, wholeAnswer } from './chat-answer.ts'
import { generate, tokensOf } from './generate.ts'
import type { Reply } from './reply.ts'
import type { Step } from './rounds.ts'
import { answerLimit, checkSupported, samplingOf, stopsOf } from './sampling.ts'
import type { Sequences } from './sequences.ts'
import type { openTemplate } from './template.ts'
import type { Vocabulary } from './vocabulary.ts'

export interface ChatParts {
  id: string
  fingerprint: string
  model: LlamaModel
  vocabulary: Vocabulary
  render: ReturnType<typeof openTemplate>
  sequences: Sequences
  step: Step
  /** Tokens of one request, prompt and answer together. */
  context: number
  /** Tokens of a prompt that are computed in one step. */
  piece: number
  newBias: () => TokenBias
}

/** A token stands for some characters; a prompt with more than this many for each that fits need not be counted. */
const mostCharactersPerToken = 64

/** Answers POST /v1/chat/completions. */
export function openChat(parts: ChatParts) {
  const { model, vocabulary, render, sequences, step, context, piece, newBias } = parts

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

    const { signal } = reply
    const slot = await sequences.take(prompt, signal)
    const { dropFirstSpace } = vocabulary
    const work = {
      slot,
      prompt,
      sampling,
      limit,
      context,
      piece,
      step,
      signal,
      vocabulary,
      newBias,
      stops,
      dropFirstSpace,
    }
    try {
      if (request.stream) {
        const frames = streamFrames(head, request.stream_options?.include_usage === true)
        let begun = false
        const say = (text: string) => {
          if (!begun) {
            begun = true
            return reply.write(frames.first() + (text === '' ? '' : frames.text(text)))
          }
          return text === '' ? undefined : reply.write(frames.text(text))
        }
        const { reason, ...counts } = await generate(work, say)
        reply.end(frames.last(reason, { promptTokens: prompt.length, ...counts }))
      } else {
        let whole = ''
        const { reason, ...counts } = await generate(work, text => {
          whole += text
        })
        reply.json(wholeAnswer(head, whole, reason, { promptTokens: prompt.length, ...counts }))
      }
    } catch (error) {
      // What llama.cpp left in the memory of a slot after an error of its own is anybody's guess.
      if (!(error instanceof Failure)) {
        slot.exact = 0
        await slot.sequence.clearHistory()
      }
      throw error
    } finally {
      sequences.give(slot)
    }
  }
}
