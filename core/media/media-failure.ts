import { Failure, type FailureCode } from '../failure.ts'
import type { MediaKind } from './media-input.ts'
import { megabytes } from './source.ts'

const codes: Record<MediaKind, FailureCode> = {
  image: 'invalid_image',
  mask: 'invalid_image',
  video: 'invalid_video',
  audio: 'invalid_audio',
}

/** Returns the failure for media of more than `maxBytes` bytes. */
export const tooLargeFailure = (field: string, kind: MediaKind, maxBytes: number): Failure =>
  new Failure(codes[kind], `'${field}' is larger than ${megabytes(maxBytes)}.`)

/** Adds the field to a failure of a decoder, which knows neither the field nor the expected kind of media. */
export function failureOfField({ code, message, cause }: Failure, field: string, kind: MediaKind): Failure {
  const ofContent = ['invalid_image', 'invalid_video', 'invalid_audio'].includes(code)
  const text = message.replace(/^The (image|file|video|audio)\b/, () => `The ${kind} in '${field}'`)
  return new Failure(ofContent ? codes[kind] : code, text, { param: field, cause })
}
