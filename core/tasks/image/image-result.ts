import { linkedFile } from '../generation/linked.ts'
import type { ResultFile } from '../generation/result.ts'
import type { GenerationInputs } from '../protocols/generation-call.ts'
import type { Completed } from '../protocols/infer-generation.ts'
import type { Link } from '../task.ts'

/** What a job for pictures in the words of an OpenAI-style API stores as its result: files without addresses. */
export interface ImageResult {
  /** Unix seconds. */
  created: number
  images: ResultFile[]
  output_format: string
  /** `<width>x<height>` of the first, as it is. */
  size: string
  seed_used: number
  /** What the engine worked with, where that is not what was sent. */
  revised_prompt?: string
  /** Seconds. */
  timings: { inference: number }
}

/** What of a generation is stored for such a job. */
export function imageResultOf(
  inputs: GenerationInputs,
  { seed_used, prompt }: Completed,
  images: ResultFile[],
  { inference, now }: { inference: number; now: number },
): ImageResult {
  const { width, height } = images[0]!
  return {
    created: Math.floor(now / 1000),
    images,
    output_format: inputs.output_format,
    size: `${width ?? inputs.width}x${height ?? inputs.height}`,
    seed_used,
    ...(prompt === undefined || prompt === inputs.prompt ? {} : { revised_prompt: prompt }),
    timings: { inference },
  }
}

/** No engine that makes pictures counts tokens. */
export const imageUsage = {
  input_tokens: 0,
  output_tokens: 0,
  total_tokens: 0,
  input_tokens_details: { text_tokens: 0, image_tokens: 0 },
} as const

/** Returns a stored result as a reader gets it: files by address, under `data` as OpenAI has them and under `images`. */
export function linkedImages({ created, images, revised_prompt, ...facts }: ImageResult, link: Link) {
  const shown = images.map(image => linkedFile(image, link))
  const revised = revised_prompt === undefined ? {} : { revised_prompt }
  const data = shown.map(({ url }) => ({ url, ...revised, seed: facts.seed_used }))
  return { created, data, images: shown, ...facts, usage: imageUsage }
}
