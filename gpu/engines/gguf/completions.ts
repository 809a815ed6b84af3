import { randomInt } from 'node:crypto'
import type { LlamaModel, Token } from 'node-llama-cpp'
import { invalid } from '../../../core/failure.ts'
import { CompletionRequest } from '../../../core/schemas/completion.ts'
import { parsed } from '../../../core/schemas/issues.ts'
import type { Handler } from '../http.ts'
import type { AdapterOf } from './adapters.ts'
import { answerHead, asksProgress } from './chat-answer.ts'
import {
  type CompletionChoice,
  completionFrames,
  joinLogprobs,
  openTokenLists,
  wholeCompletion,
} from './completion-answer.ts'
import { boundedText, knownTokens } from './embeddings.ts'
import { type GeneratedPiece, type GenerateWork, type Generator, type PromptToken, tokensOf } from './generate.ts'
import { answerLimit, samplingOf, stopsOf } from './sampling.ts'
import { savingOwner } from './saved-states.ts'
import type { Vocabulary } from './vocabulary.ts'

export interface CompletionParts {
  id: string
  fingerprint: string
  model: LlamaModel
  vocabulary: Vocabulary
  generator: Generator
  adapterOf: AdapterOf
  /** Tokens of one request, prompt and answer together. */
  context: number
  /** Prompts of one request that are processed at once. */
  parallel: number
}

/** OpenAI's default. */
const defaultTokens = 16

interface Prompt {
  tokens: Token[]
  /** Number of tokens at the start that the caller did not send. */
  added: number
  text: string
  limit: number
}

export function openCompletions(parts: CompletionParts): Handler {
  const { model, vocabulary, generator, adapterOf, context } = parts

  function promptOf(given: string | number[], param: string, request: CompletionRequest): Prompt {
    const tokens =
      typeof given === 'string'
        ? tokensOf(model, [{ text: boundedText(given, context, param), plain: false }])
        : knownTokens(given, vocabulary.size, param)
    const { bos } = model.tokens
    const added = typeof given === 'string' && bos !== null && tokens[0] === bos ? 1 : 0
    if (tokens.length === 0) throw invalid(param, `'${param}' is empty. Send some text.`)
    return {
      tokens,
      added,
      text: typeof given === 'string' ? given : request.echo ? textOf(tokens) : '',
      limit: answerLimit(tokens.length, context, request.max_tokens ?? defaultTokens, param),
    }
  }

  const textOf = (tokens: readonly Token[]): string =>
    new TextDecoder('utf-8', { ignoreBOM: true }).decode(Buffer.concat(tokens.map(token => vocabulary.bytes(token))))

  return async (body, reply, headers) => {
    const request = parsed(CompletionRequest, body)
    checkSupported(request)
    const adapter = adapterOf(request.model)
    const { prompt, n, logprobs, echo = false, stream_options } = request
    const one = typeof prompt === 'string' || typeof prompt[0] === 'number'
    const prompts = (one ? [prompt] : (prompt as (string | number[])[])).map((given, at) =>
      promptOf(given as string | number[], one ? 'prompt' : `prompt[${at}]`, request),
    )
    const choices = n ?? 1
    const sampling = samplingOf(request, vocabulary.size, randomInt(2 ** 32 - 1))
    const stops = stopsOf(request.stop)
    const other = new AbortController()
    const signal = prompts.length === 1 ? reply.signal : AbortSignal.any([reply.signal, other.signal])
    const head = answerHead('cmpl', parts)
    const frames = request.stream ? completionFrames(head, stream_options?.include_usage === true) : undefined
    let opening =
      frames && asksProgress(body) ? frames.progress(prompts.reduce((sum, { tokens }) => sum + tokens.length, 0)) : ''
    const answers: CompletionChoice[] = Array.from({ length: prompts.length * choices }, () => ({
      text: '',
      logprobs: null,
      reason: 'stop',
    }))
    const counts = { promptTokens: 0, completionTokens: 0, cachedTokens: 0 }

    async function complete({ tokens, added, text, limit }: Prompt, from: number): Promise<void> {
      counts.promptTokens += tokens.length
      let scored: readonly PromptToken[] = []
      const lists = Array.from({ length: choices }, () => openTokenLists(vocabulary.dropFirstSpace && added > 0))
      const begun = new Set<number>()
      const say = (piece: GeneratedPiece, choice: number): void | Promise<void> => {
        const first = !begun.has(choice) && echo === true
        begun.add(choice)
        const pieceText = first ? text + piece.text : piece.text
        if (first && scored.length === 0) lists[choice]!.skip(text)
        const shown = first ? [...scored, ...piece.tokens] : piece.tokens
        const list = logprobs == null ? null : lists[choice]!.lists(shown, logprobs)
        if (frames) {
          const part = opening + frames.piece(from + choice, pieceText, list, piece.reason)
          opening = ''
          return reply.write(part)
        }
        const answer = answers[from + choice]!
        answer.text += pieceText
        answer.logprobs = joinLogprobs(answer.logprobs, list)
        if (piece.reason !== null) answer.reason = piece.reason
      }
      const work: GenerateWork = {
        prompt: tokens,
        sampling,
        limit,
        stops,
        signal,
        choices,
        owner: savingOwner(headers, body),
        adapter,
        keepFirstSpace: true,
        logprobs: logprobs ?? undefined,
        onPrompt: logprobs != null && echo ? all => void (scored = all.slice(added)) : undefined,
      }
      if (limit === 0 && !work.onPrompt) {
        for (let choice = 0; choice < choices; choice++) await say({ text: '', tokens: [], reason: 'length' }, choice)
        return
      }
      const { completionTokens, cachedTokens } = await generator.generate(work, say)
      counts.completionTokens += completionTokens
      counts.cachedTokens += cachedTokens
    }

    let next = 0
    const worker = async () => {
      for (let at = next++; at < prompts.length; at = next++) await complete(prompts[at]!, at * choices)
    }
    const workers = Array.from({ length: Math.min(parts.parallel, prompts.length) }, worker)
    for (const done of workers) done.catch((error: unknown) => other.abort(error))
    await Promise.allSettled(workers)
    await Promise.all(workers)
    if (frames) reply.end(frames.last(counts))
    else reply.json(wholeCompletion(head, answers, counts))
  }
}

/** Throws Failure for parameters that this engine does not support, instead of ignoring them. */
function checkSupported({ suffix, best_of, n, max_tokens, echo }: CompletionRequest): void {
  const refuse = (param: string, what: string) =>
    invalid(
      param,
      `The built-in engine cannot ${what}. Leave '${param}' out or choose another engine.`,
      'unsupported_parameter',
    )
  if (suffix) throw refuse('suffix', 'fill in what comes before a suffix')
  if ((best_of ?? 1) > (n ?? 1)) throw refuse('best_of', 'choose the best of several completions')
  if (max_tokens === 0 && !echo)
    throw invalid('max_tokens', "'max_tokens' of 0 returns only the prompt, which requires echo: true.")
}
