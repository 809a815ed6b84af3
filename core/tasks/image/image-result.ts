import { linkedFile, type ResultFile } from '../generation/result.ts'
import type { GenerationInputs } from '../protocols/generation-call.ts'
import type { Completed } from '../protocols/infer-generation.ts'
import type { FileUrl } from '../task.ts'

/** The stored result of a job of the OpenAI-compatible image tasks: files without addresses. */
export interface ImageResult {
  /** Unix seconds. */
  created: number
  images: ResultFile[]
  output_format: string
  /** `<width>x<height>` of the first image, as measured. */
  size: string
  seed_used: number
  /** The prompt that the engine used, if it differs from the request. */
  revised_prompt?: string
  /** Seconds. */
  timings: { inference: number }
}

/** Returns the result to store for such a job; `inference` is in seconds, `now` in milliseconds since 1970. */
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

/** Returns the usage of images. No image engine counts tokens. */
export const imageUsage = (images: number) => ({
  images,
  input_tokens: 0,
  output_tokens: 0,
  total_tokens: 0,
  input_tokens_details: { text_tokens: 0, image_tokens: 0 },
})

/** Returns a stored result as API clients read it: files by address, under `data` as in OpenAI's API and `images`. */
export function linkedImages({ created, images, revised_prompt, ...facts }: ImageResult, link: FileUrl) {
  const linkedFiles = images.map(image => linkedFile(image, link))
  const revised = revised_prompt === undefined ? {} : { revised_prompt }
  const data = linkedFiles.map(({ url }) => ({ url, ...revised, seed: facts.seed_used }))
  return { created, data, images: linkedFiles, ...facts, usage: imageUsage(images.length) }
}
