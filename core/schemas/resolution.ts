/** Resolutions of videos that a request can name. */
export const resolutions = ['480p', '720p', '1080p'] as const
export type Resolution = (typeof resolutions)[number]
