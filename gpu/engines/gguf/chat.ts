import { randomInt } from 'node:crypto'
import { invalid } from '../../../core/failure.ts'
import { ChatRequest } from '../../../core/schemas/chat.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import type { Handler } from '../http.ts'
import { type AnswerOptions, beginningOf, openAnswerParser, thinkingVariables } from './answer-parser.ts'
import {
  answerHead,
  asksProgress,
  type ChatChoice,
  type FinishReason,
  streamFrames,
  toolCallId,
  wholeAnswer,
} from './chat-answer.ts'
import { openConstraints } from './chat-constraint.ts'
import type { CompletionParts } from './completions.ts'
import { maxCharactersPerToken } from './embeddings.ts'
import { type Generated, type GeneratedPiece, type GenerateWork, tokensOf } from './generate.ts'
import { answerLimit, checkSupported, samplingOf, stopsOf, tooLong } from './sampling.ts'
import { savingOwner } from './saved-states.ts'
import type { ChatTemplate, PromptPart } from './template.ts'
import { marksOf, toolCallingOf } from './tools/call-form.ts'
import type { AnswerEvent } from './tools/call-parser.ts'

export interface ChatParts extends Omit<CompletionParts, 'parallel'> {
  template: ChatTemplate
}

export function openChat(parts: ChatParts): Handler {
  const { model, vocabulary, template, generator, adapterOf, context } = parts
  const constraintOf = openConstraints()

  function tokensFor(stretches: readonly PromptPart[]) {
    const characters = stretches.reduce((sum, stretch) => sum + stretch.text.length, 0)
    if (characters > context * maxCharactersPerToken)
      throw tooLong('messages', context, `The messages have ${characters} characters, which is far more. Shorten them.`)
    const prompt = tokensOf(model, stretches)
    if (prompt.length === 0)
      throw invalid('messages', 'The messages are empty after the chat template. Send a message with text.')
    return prompt
  }

  return async (body, reply, headers) => {
    const request = parsed(ChatRequest, body)
    checkSupported(request)
    const adapter = adapterOf(request.model)
    const stops = stopsOf(request.stop)
    const sampling = samplingOf(request, vocabulary.size, randomInt(2 ** 32 - 1))
    const calling = toolCallingOf(request, template.form)
    const stretches = template.render(request.messages, thinkingVariables(request), calling)
    const answer: AnswerOptions = {
      calling,
      marks: template.marks,
      beginning: beginningOf(stretches.at(-1)?.text ?? '', template.marks),
    }
    const constraint = await constraintOf({ ...answer, format: request.response_format })
    reply.ignored = constraint?.leftOut ?? []
    const prompt = tokensFor(stretches)
    const work: GenerateWork = {
      prompt,
      sampling,
      limit: answerLimit(prompt.length, context, request.max_completion_tokens ?? request.max_tokens),
      // A forced tool call has no text to which stop strings apply.
      stops: calling?.forced ? [] : stops,
      signal: reply.signal,
      owner: savingOwner(headers, body),
      adapter,
      choices: request.n ?? 1,
      logprobs: request.logprobs ? (request.top_logprobs ?? 0) : undefined,
      grammar: constraint?.grammar,
      showControls: [answer.marks?.open, answer.marks?.close, ...(calling ? marksOf(calling.form) : [])].filter(
        mark => mark !== undefined,
      ),
    }
    const head = answerHead('chatcmpl', parts)
    const newCallId = () => toolCallId(template.form.family)
    const usageOf = (counts: Generated, readers: readonly Reader[]) => ({
      ...counts,
      promptTokens: prompt.length,
      reasoningTokens: Math.min(
        counts.completionTokens,
        readers.reduce((sum, { thoughts }) => sum + model.tokenize(thoughts, false, 'trimLeadingSpace').length, 0),
      ),
    })
    const readers = Array.from({ length: request.n ?? 1 }, () => openReader(answer))
    if (request.stream) {
      const frames = streamFrames(head, newCallId, request.stream_options?.include_usage === true)
      const choices = readers.map((_, index) => frames.choice(index))
      const wordsOnly = calling === undefined && answer.beginning === 'answer'
      let opening = asksProgress(body) ? frames.progress(prompt.length) : ''
      const counts = await generator.generate(work, (piece, index) => {
        const { events, reason } = readers[index]!.read(piece)
        const more = choices[index]!.more(events, piece.tokens, wordsOnly)
        const part = opening + (reason === null ? more : more + choices[index]!.end(reason))
        opening = ''
        return part === '' ? undefined : reply.write(part)
      })
      reply.end(frames.last(usageOf(counts, readers)))
    } else {
      const choices: ChatChoice[] = readers.map(() => ({ events: [], tokens: [], reason: 'stop' }))
      const counts = await generator.generate(work, (piece, index) => {
        const { events, reason } = readers[index]!.read(piece)
        const choice = choices[index]!
        choice.events.push(...events)
        choice.tokens.push(...piece.tokens)
        if (reason !== null) choice.reason = reason
      })
      reply.json(wholeAnswer(head, choices, newCallId, usageOf(counts, readers), request.logprobs === true))
    }
  }
}

type Reader = ReturnType<typeof openReader>

/** Parses one choice piece by piece and keeps its reasoning text, whose tokens are counted at the end. */
function openReader(answer: AnswerOptions) {
  const parser = openAnswerParser(answer)
  let thoughts = ''
  return {
    read({ text, reason }: GeneratedPiece): { events: AnswerEvent[]; reason: FinishReason | null } {
      const events = parser.push(text)
      if (reason !== null) events.push(...parser.end(reason === 'length'))
      for (const event of events) if (event.kind === 'reasoning') thoughts += event.text
      return { events, reason: reason === 'stop' && parser.called ? 'tool_calls' : reason }
    },
    get thoughts(): string {
      return thoughts
    },
  }
}
