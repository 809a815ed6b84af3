import { sampleRate } from '../../../core/media/audio-decoder.ts'

/** When speech begins and ends. Members are those of OpenAI's `server_vad`. */
export interface TurnDetection {
  /** 0 to 1: how much louder than the background speech must be. */
  threshold: number
  /** Milliseconds of audio before the begin of speech that belong to it. */
  prefix_padding_ms: number
  /** Milliseconds of silence that end speech. */
  silence_duration_ms: number
}

/** A change, with the position of the sample at which it happened since the first one. */
export interface VoiceChange {
  type: 'started' | 'stopped'
  at: number
}

/** Samples of a frame: 20 ms. */
export const frameSamples = sampleRate / 50
/** Frames of speech in a row that begin it, so that a click does not. */
const onsetFrames = 3
/** Fewer changes of sign in a frame are hum or rumble below 75 Hz, which no voice is. */
const minCrossings = 3
/** Level of digital silence, decibels below full scale. */
const silence = -90
/** The background is the quietest of this many frames (3 s): speech has pauses, and noise has none. */
const backgroundFrames = 150
/** Decibels below full scale of the background as long as nothing quieter was heard, so that noise is no speech at first. */
const assumedBackground = -40
/** The part of each sample that a high-pass filter of 120 Hz keeps. Two of them lower hum by 16 dB. */
const kept = 1 / (1 + (2 * Math.PI * 120) / sampleRate)

/** Removes hum and what is slower, sample by sample. */
function openHighPass(): (sample: number) => number {
  let [input, first, second] = [0, 0, 0]
  return sample => {
    const before = first
    first = kept * (first + sample - input)
    input = sample
    second = kept * (second + first - before)
    return second
  }
}

/**
 * Detects speech by the energy of frames above the background, with hysteresis. Speech that has begun continues through
 * quieter frames, and ends after the given silence.
 */
export function openVoiceActivity({ threshold, silence_duration_ms }: TurnDetection) {
  /** Decibels above the background that begin speech: 12 at the default threshold of 0.5. */
  const margin = 6 + 12 * threshold
  /** Decibels below full scale that speech has at least, however quiet the background is. */
  const floor = -55 + 20 * threshold
  const silentFrames = Math.max(1, Math.round((silence_duration_ms * sampleRate) / 1000 / frameSamples))
  const highPass = openHighPass()
  const frame = new Float64Array(frameSamples)
  const levels = new Float64Array(backgroundFrames).fill(assumedBackground)
  let filled = 0
  let frames = 0
  let speaking = false
  /** Frames in a row that contradict the current state. */
  let against = 0

  function next(): VoiceChange | undefined {
    const { level, crossings } = measured(frame)
    const voiced = crossings >= minCrossings
    const background = levels.reduce((lowest, one) => Math.min(lowest, one))
    const loud = voiced && level > Math.max(floor, background + (speaking ? margin / 2 : margin))
    levels[frames % backgroundFrames] = level
    frames++
    against = loud === speaking ? 0 : against + 1
    if (!speaking && against >= onsetFrames) {
      speaking = true
      against = 0
      return { type: 'started', at: (frames - onsetFrames) * frameSamples }
    }
    if (speaking && against >= silentFrames) {
      speaking = false
      against = 0
      return { type: 'stopped', at: frames * frameSamples }
    }
    return undefined
  }

  return {
    /** Returns the changes in these samples, which follow those of the call before. */
    push(samples: Int16Array): VoiceChange[] {
      const changes: VoiceChange[] = []
      for (let at = 0; at < samples.length; ) {
        const count = Math.min(frameSamples - filled, samples.length - at)
        for (let one = 0; one < count; one++) frame[filled++] = highPass(samples[at++]!)
        if (filled < frameSamples) break
        filled = 0
        const change = next()
        if (change) changes.push(change)
      }
      return changes
    },
    get speaking(): boolean {
      return speaking
    },
  }
}
export type VoiceActivity = ReturnType<typeof openVoiceActivity>

function measured(samples: Float64Array) {
  let energy = 0
  let crossings = 0
  let before = 0
  for (const sample of samples) {
    energy += sample * sample
    if (sample * before < 0) crossings++
    before = sample
  }
  const level = energy === 0 ? silence : 10 * Math.log10(energy / samples.length / (32_768 * 32_768))
  return { level: Math.max(silence, level), crossings }
}
