import { AbortSource } from '../../../core/abort-source.ts'
import { Failure } from '../../../core/failure.ts'
import { sampleRate } from '../../../core/media/audio-decoder.ts'
import { openStableText, type StableText } from './stable-text.ts'

/** A part of the audio that becomes one item: speech, or what the client commits. */
export interface Utterance {
  id: string
  /** Position of its first sample. */
  from: number
  text: StableText
  /** Position up to which it was transcribed while it went on. */
  heardTo: number
  /** Aborts that transcription; set while it runs. */
  partial: AbortSource | undefined
}

interface Transcribe {
  (
    samples: Int16Array,
    options: { partial: boolean; caller: AbortSource },
  ): Promise<{
    text: string
    seconds: number
  }>
}

/** How many committed utterances of a connection may wait for their text. */
const maxWaiting = 4
/** Samples after which an utterance is first transcribed while it goes on. */
const firstPartial = sampleRate
const ended = () => new Failure('cancelled', 'The utterance has ended.')

/**
 * Transcribes the utterances of a connection: committed ones one after the other, and the current one while it goes on.
 * Each partial transcription hears half as much again as the one before, so that all of them together hear an utterance
 * at most three times.
 */
export function openUtterances(transcribe: Transcribe, send: (event: object) => void) {
  const stopped = new AbortSource()
  let last: Promise<void> = Promise.resolve()
  let waiting = 0

  const delta = (item_id: string, text: string) => {
    if (text !== '')
      send({ type: 'conversation.item.input_audio_transcription.delta', item_id, content_index: 0, delta: text })
  }

  function failed(item_id: string, thrown: unknown) {
    if (stopped.aborted) return
    const { type, code, message, param } = Failure.from(thrown)
    const error = { type, code, message, param: param ?? null }
    send({ type: 'conversation.item.input_audio_transcription.failed', item_id, content_index: 0, error })
  }

  async function finish({ id, text }: Utterance, samples: Int16Array) {
    if (stopped.aborted) return
    try {
      const { text: transcript, seconds } = await transcribe(samples, { partial: false, caller: stopped })
      delta(id, text.final(transcript))
      send({
        type: 'conversation.item.input_audio_transcription.completed',
        item_id: id,
        content_index: 0,
        transcript,
        usage: { type: 'duration', seconds },
      })
    } catch (thrown) {
      failed(id, thrown)
    }
  }

  return {
    begin: (id: string, from: number): Utterance => ({
      id,
      from,
      text: openStableText(),
      heardTo: from,
      partial: undefined,
    }),

    /** Transcribes the utterance so far, if enough was said since the last time. A failure shows nothing. */
    heard(utterance: Utterance, to: number, samples: () => Int16Array): void {
      const known = utterance.heardTo - utterance.from
      const due = to - utterance.heardTo >= Math.max(firstPartial, known / 2)
      if (!due || utterance.partial || waiting > 0 || stopped.aborted) return
      utterance.heardTo = to
      const caller = (utterance.partial = new AbortSource())
      void transcribe(samples(), { partial: true, caller })
        .then(({ text }) => caller.aborted || delta(utterance.id, utterance.text.partial(text)))
        .catch(() => undefined)
        .finally(() => (utterance.partial = undefined))
    },

    /** Transcribes the whole utterance after those that were committed before. */
    commit(utterance: Utterance, samples: Int16Array): void {
      utterance.partial?.abort(ended())
      if (waiting >= maxWaiting)
        return failed(
          utterance.id,
          new Failure(
            'queue_full',
            `${maxWaiting} utterances of this connection wait for their text. Send audio more slowly.`,
          ),
        )
      waiting++
      last = last.then(() => finish(utterance, samples)).finally(() => waiting--)
    },

    drop: (utterance: Utterance | undefined): void => utterance?.partial?.abort(ended()),

    /** Aborts all transcriptions. */
    close(utterance: Utterance | undefined): void {
      stopped.abort(new Failure('cancelled', 'The connection was closed.'))
      utterance?.partial?.abort(ended())
    },
  }
}
