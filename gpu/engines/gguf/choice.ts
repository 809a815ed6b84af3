import type { Token } from 'node-llama-cpp'
import { Failure } from '../../../core/failure.ts'
import type { Generated, GeneratedPiece, GenerateWork, GenerationEnd, GeneratorParts, PromptToken } from './generate.ts'
import type { Guard } from './grammar/guard.ts'
import { openGuesses } from './guesses.ts'
import { type Logprobs, openLogprobs, type TokenLogprob } from './logprobs.ts'
import type { SamplerConfig } from './native.ts'
import type { Member } from './rounds.ts'
import type { Sampling } from './sampling.ts'
import type { Slot } from './slots.ts'
import { openText } from './stop.ts'

export interface ChoiceWork extends Omit<GenerateWork, 'choices'> {
  /** Tokens that must not be sampled with a grammar, because llama.cpp's grammar misreads them. */
  guard?: Guard
}

interface DeliveryHooks {
  onPiece: (piece: GeneratedPiece) => void | Promise<void>
  /** Called when the caller has accepted a piece, or is gone. */
  wake: () => void
}

/**
 * Delivers the text of one answer to its caller; what is added while the caller has not accepted the last piece is joined.
 * `ended` resolves with `counts` when all of it has been delivered, or rejects.
 */
function openDelivery(signal: AbortSignal, { onPiece, wake }: DeliveryHooks, counts: () => Generated) {
  const ended = Promise.withResolvers<Generated>()
  const gone = () => fail(signal.reason)
  /** Generated but not yet delivered. */
  let piece: GeneratedPiece | undefined
  let failed = false
  const delivery = { ended: ended.promise, isBlocked: false, isOver: false, add, tell, fail }
  signal.addEventListener('abort', gone, { once: true })
  // Avoid an unhandled rejection while the caller does not await it yet.
  ended.promise.catch(() => {})

  function add({ text, tokens, reason }: GeneratedPiece): void {
    piece = piece ? { text: piece.text + text, tokens: [...piece.tokens, ...tokens], reason } : { text, tokens, reason }
    if (reason !== null) delivery.isOver = true
  }

  function fail(error: unknown): void {
    delivery.isOver = true
    failed = true
    signal.removeEventListener('abort', gone)
    ended.reject(error)
    wake()
  }

  function tell(): void {
    if (delivery.isBlocked || failed || piece === undefined) return
    const now = piece
    piece = undefined
    const taken = (): void => {
      if (now.reason === null) return
      signal.removeEventListener('abort', gone)
      ended.resolve(counts())
    }
    try {
      const taking = onPiece(now)
      if (!taking) return taken()
      delivery.isBlocked = true
      taking.then(() => {
        delivery.isBlocked = false
        taken()
        tell()
        wake()
      }, fail)
    } catch (error) {
      fail(error)
    }
  }

  return delivery
}

/**
 * Generates one answer as a member of the rounds. `prompted` resolves when its prompt is in memory or never will be;
 * `ended` resolves when all text has been delivered, or rejects.
 */
export function openChoice(parts: GeneratorParts, work: ChoiceWork, hooks: DeliveryHooks) {
  const { native, vocabulary, context, guessLength } = parts
  const { prompt, sampling, limit, signal, showControls, onPrompt } = work
  const text = openText(work.stops, vocabulary.dropFirstSpace && work.keepFirstSpace !== true)
  const grammar = work.grammar === undefined ? undefined : native.newGrammarState(work.grammar)
  const logprobs =
    work.logprobs === undefined ? undefined : openLogprobs(native, vocabulary, work.logprobs, showControls)
  const generated: Token[] = []
  const guesses = guessLength && !sampling.reproducible ? openGuesses(prompt) : undefined
  const prompted = Promise.withResolvers<void>()
  let cachedTokens = 0
  /** The token that ends a text is counted, as llama-server, vLLM and OpenAI do. */
  let endDrawn = false
  /** Log probabilities of tokens whose text is still held back, with the text length after each. */
  let held: { token: TokenLogprob; end: number }[] = []
  let drawn: TokenLogprob | undefined
  let sure = 0
  let guarded: ReadonlySet<Token> = work.guard?.after(undefined) ?? new Set()
  const sampler = native.newSampler(configOf(sampling, context, [], guarded, grammar))
  const delivery = openDelivery(signal, hooks, () => ({
    completionTokens: generated.length + (endDrawn ? 1 : 0),
    cachedTokens,
  }))

  function push(fresh: string, reason: GenerationEnd | null): void {
    sure += fresh.length
    const isOut = ({ end }: { end: number }) => (reason === null ? end <= sure : end <= sure || !text.stopped)
    const tokens = held.filter(isOut).map(({ token }) => token)
    held = held.filter(entry => !isOut(entry))
    if (fresh !== '' || tokens.length > 0 || reason !== null) delivery.add({ text: fresh, tokens, reason })
  }

  /** Records the probability of each prompt token, from the logits of the token before. */
  function openScoring(found: Logprobs, hear: (tokens: readonly PromptToken[]) => void): Member['scoring'] {
    const scored: PromptToken[] = [{ ...vocabulary.written(prompt[0]!), logprob: null, top_logprobs: [] }]
    return async (places, from) => {
      for (const [at, place] of places.entries()) {
        const token = prompt[from + at + 1]
        if (token !== undefined) scored.push(await found.of(token, place))
      }
      if (scored.length < prompt.length || from + places.length < prompt.length) return
      member.scoring = undefined
      hear(scored)
      if (limit === 0) push('', 'length')
    }
  }

  let slot: Slot | undefined
  const member: Member = {
    choose() {
      const choice = parts.slots.choose(prompt, sampling.reproducible, work.adapter?.key)
      slot = choice.slot
      return choice
    },
    get slot() {
      return slot!
    },
    prompt,
    alone: sampling.reproducible,
    ...(guesses && {
      guesses: {
        // One token follows those that were guessed.
        next: count => guesses.next(Math.min(count, limit - generated.length - 1)),
        rate: guessLength!.rate(),
      },
    }),
    owner: work.owner,
    adapter: work.adapter,
    pending: prompt,
    next: 0,
    get blocked() {
      return delivery.isBlocked
    },
    get over() {
      return delivery.isOver
    },
    settled(reused) {
      cachedTokens = reused
      member.pending = prompt.slice(reused)
    },
    scoring: logprobs && onPrompt && openScoring(logprobs, onPrompt),
    async draw(at) {
      prompted.resolve()
      const token = await native.context.sampleToken(at, sampler)
      if (token < 0)
        throw new Failure(
          'worker_error',
          'No token can continue this text: the grammar, the bias or the sampling allows none.',
        )
      if (logprobs) drawn = await logprobs.of(token, at)
      return token
    },
    accept(id) {
      const token = id as Token
      if (vocabulary.endsText(token)) {
        endDrawn = true
        return push(text.end(), 'stop')
      }
      generated.push(token)
      guesses?.add(token)
      const bytes = vocabulary.bytes(token, showControls)
      const fresh = text.push(bytes)
      const next = work.guard?.after(bytes.at(-1)) ?? guarded
      if (next !== guarded) {
        guarded = next
        sampler.applyConfig(configOf(sampling, context, generated, guarded, grammar))
      }
      if (drawn) held.push({ token: drawn, end: text.length })
      if (text.stopped) return push(fresh, 'stop')
      // The rest of the text may complete a stop string.
      if (generated.length >= limit) return push(fresh + text.end(), text.stopped ? 'stop' : 'length')
      push(fresh, null)
      member.pending = [token]
      member.next = 0
    },
    tell: delivery.tell,
    fail: delivery.fail,
    release(broken) {
      prompted.resolve()
      sampler.dispose()
      logprobs?.close()
      if (broken && slot) {
        slot.tokens = []
        slot.exact = 0
      }
      parts.slots.give(slot)
    },
  }
  return { member, prompted: prompted.promise, ended: delivery.ended }
}

/** `generated` are the tokens that penalties apply to, `refused` those that must not be sampled now. */
function configOf(
  { temperature, topK, topP, minP, seed, penalties, bias }: Sampling,
  context: number,
  generated: readonly Token[],
  refused: Iterable<number>,
  grammarEvaluationState: SamplerConfig['grammarEvaluationState'],
): SamplerConfig {
  const biased = new Map(bias)
  for (const token of refused) biased.set(token, Number.NEGATIVE_INFINITY)
  return {
    temperature,
    topK,
    topP,
    minP,
    seed,
    ...(penalties && {
      repeatPenalty: penalties.penalty,
      repeatPenaltyPresencePenalty: penalties.presencePenalty,
      repeatPenaltyFrequencyPenalty: penalties.frequencyPenalty,
      repeatPenaltyTokens: Uint32Array.from(generated),
      // Constant, because every change creates a new sampler.
      repeatPenaltyMaxTokens: context,
    }),
    ...(biased.size > 0 && {
      tokenBiasKeys: Uint32Array.from(biased.keys()),
      tokenBiasValues: Float32Array.from(biased.values()),
    }),
    ...(grammarEvaluationState && { grammarEvaluationState }),
  }
}
