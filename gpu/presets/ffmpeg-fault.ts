import { ffmpegVersion } from '../../core/media/ffmpeg-version.ts'

/** The `test` of ffmpeg as a needed program. */
export async function ffmpegFault(file: string): Promise<string | null> {
  const answer = await ffmpegVersion(file)
  return 'fault' in answer ? answer.fault : null
}
