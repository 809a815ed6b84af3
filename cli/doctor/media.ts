import type { FoundFfmpeg } from '../../core/media/ffmpeg.ts'
import { broken, type Finding, fine, warning } from './finding.ts'

/** Judgements about pictures and videos. Pure: what was found out is passed in. */

/** `fault`: why a picture could not be decoded, as a sentence; undefined when it could. */
export const checkImageSupport = (fault: string | undefined): Finding =>
  fault === undefined
    ? fine('pictures', 'JPEG, PNG and WebP can be read')
    : broken('pictures', fault, 'Without this no picture can be taken or made; repair what the message says.')

/** Videos are made by engines; what they are is only known, and seen in a thumbnail, with ffmpeg. */
export function checkFfmpegFound(found: FoundFfmpeg | { missing: string }): Finding {
  if ('missing' in found) {
    const [what, ...advice] = found.missing.split(/(?<=\.) /)
    return warning(
      'ffmpeg',
      `${what!.replace(/\.$/, '')}: no video or sound can be sent in, and videos have no thumbnails`,
      advice.join(' '),
    )
  }
  const { ffmpeg, version, libx264, minterpolate } = found
  const lacking = [
    libx264 ? [] : ['libx264 (H.264)'],
    minterpolate ? [] : ['minterpolate (frames between frames)'],
  ].flat()
  return lacking.length === 0
    ? fine('ffmpeg', `${version} (${ffmpeg})`)
    : warning(
        'ffmpeg',
        `${version} (${ffmpeg}) is built without ${lacking.join(' and ')}`,
        'Install a full build, such as the package of your distribution, or name one in infer.yaml under media.ffmpeg.',
      )
}
