import { imageFormats } from '../cpu/image-kind.ts'
import { Failure, type FailureCode } from '../failure.ts'
import { diskFailure } from '../files/write.ts'
import { megabytes } from './source.ts'

export type MediaKind = 'image' | 'mask' | 'video' | 'audio'

/** Media of a request: a URL or file id, its content if the request contained it, or an uploaded file on the disk. */
export type MediaInput = string | Uint8Array | { path: string; bytes: number }

/** How an image or a mask is taken. */
export interface TakeOptions {
  /** The transparent pixels of a mask are selected: they become white. */
  alpha?: boolean | undefined
}

/** The sender of media and the job for which it is sent. */
export interface MediaSender {
  organizationId: string
  /** Origin of this server as the caller knows it: `https://infer.example`. */
  origin: string
  /** The job that gets the media as an input. */
  jobId?: string
  signal?: AbortSignal
}

/** What can be fetched: media, or a file of any kind that is stored as it is. */
export type FetchedKind = MediaKind | 'file'

/** The code of a file that is not what the field needs. */
const codes: Record<FetchedKind, FailureCode> = {
  image: 'invalid_image',
  mask: 'invalid_image',
  video: 'invalid_video',
  audio: 'invalid_audio',
  file: 'payload_too_large',
}

/** Returns the failure for media of more than `maxBytes` bytes. */
export const tooLargeFailure = (field: string, kind: FetchedKind, maxBytes: number): Failure =>
  new Failure(codes[kind], `'${field}' is larger than ${megabytes(maxBytes)}.`)

/** Returns the failure for media without a single byte. */
export const emptyFailure = (field: string, kind: FetchedKind): Failure =>
  new Failure(codes[kind], `'${field}' is empty: the file has no bytes. Send it again.`)

/** Adds the field to a failure of a decoder, which knows neither the field nor the expected kind of media. */
export function failureOfField(failure: Failure, field: string, kind: FetchedKind): Failure {
  const ofContent = ['invalid_image', 'invalid_video', 'invalid_audio'].includes(failure.code)
  const message = failure.message.replace(/^The (image|file|video|audio)\b/, () => `The ${kind} in '${field}'`)
  return failure.with({ ...(ofContent ? { code: codes[kind] } : {}), message, param: field })
}

/** Errors of the disk must not be reported as errors of the URL. */
export function writeFailed(cause: NodeJS.ErrnoException): never {
  throw Failure.from(diskFailure(cause))
}

export const missingContent = (field: string) =>
  new Failure('not_found', `'${field}' names a file whose content has been deleted. Send it again.`)

/** Limits of images in requests. Engines never get the original file. */
export const imageRules = {
  formats: imageFormats,
  maxBytes: 10 << 20,
  maxPixels: 40_000_000,
  maxSide: 8192,
} as const
