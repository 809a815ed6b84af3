import { Failure, type FailureCode } from '../failure.ts'
import { diskFailure } from '../files/write.ts'

export type MediaKind = 'image' | 'mask' | 'video' | 'audio'
/** What can be fetched: media, or a file of any kind that is stored as it is. */
export type FetchedKind = MediaKind | 'file'

/** The code of a file that is not what the field needs. */
export const failureCodes: Record<FetchedKind, FailureCode> = {
  image: 'invalid_image',
  mask: 'invalid_image',
  video: 'invalid_video',
  audio: 'invalid_audio',
  file: 'payload_too_large',
}
/** Adds the field to a failure of a decoder, which knows neither the field nor the expected kind of media. */
export function failureOfField({ code, message, cause }: Failure, field: string, kind: FetchedKind): Failure {
  const ofContent = ['invalid_image', 'invalid_video', 'invalid_audio'].includes(code)
  const text = message.replace(/^The (image|file|video|audio)\b/, () => `The ${kind} in '${field}'`)
  return new Failure(ofContent ? failureCodes[kind] : code, text, { param: field, cause })
}

/** Errors of the disk must not be reported as errors of the URL. */
export function writeFailed(cause: NodeJS.ErrnoException): never {
  throw Failure.from(diskFailure(cause))
}

export const missingContent = (field: string) =>
  new Failure('not_found', `'${field}' names a file whose content has been deleted. Send it again.`)
