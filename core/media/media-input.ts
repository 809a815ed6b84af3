export type MediaKind = 'image' | 'mask' | 'video' | 'audio'

/** Media of a request: a URL or file id, its content if the request contained it, or an uploaded file on the disk. */
export type MediaInput = string | Uint8Array | { path: string; bytes: number }

/** How an image or a mask is taken. */
export interface TakeOptions {
  /** The transparent pixels of a mask are selected: they become white. */
  alpha?: boolean | undefined
  /** Whether the image may be WebP. */
  webp?: boolean | undefined
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
