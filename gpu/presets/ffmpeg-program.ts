import { ffmpegVersion } from '../../core/media/ffmpeg.ts'
import type { NeededProgram } from './preset.ts'

/** The ffmpeg that an engine starts for videos, by name or path. */
export const ffmpegProgram = (name: string): NeededProgram => ({
  name,
  async test(file) {
    const answer = await ffmpegVersion(file)
    return 'fault' in answer ? answer.fault : null
  },
})
