import type { FoundFfmpeg } from '../../core/media/ffmpeg.ts'
import { broken, type Finding, fine, warning } from './finding.ts'

/** Checks of image and video support. Pure: the caller passes the results of the tests. */

/** `fault`: why an image could not be decoded, as a sentence; undefined when it could. */
export const checkImageSupport = (fault: string | undefined): Finding =>
  fault === undefined
    ? fine('images', 'JPEG, PNG and WebP can be read')
    : broken(
        'images',
        fault,
        'Without this the server can neither accept nor generate images. Repair what the message reports.',
      )

/** Engines make videos without ffmpeg; infer needs it to inspect them and to make thumbnails. */
export function checkFfmpegFound(found: FoundFfmpeg | { missing: string }): Finding {
  if ('missing' in found) {
    const [what, ...advice] = found.missing.split(/(?<=\.) /)
    return warning(
      'ffmpeg',
      `${what!.replace(/\.$/, '')}: requests cannot contain video or audio, and videos have no thumbnails`,
      advice.join(' '),
    )
  }
  const { ffmpeg, version, libx264, minterpolate } = found
  const missing = [
    libx264 ? [] : ['libx264 (H.264)'],
    minterpolate ? [] : ['minterpolate (frame interpolation)'],
  ].flat()
  return missing.length === 0
    ? fine('ffmpeg', `${version} (${ffmpeg})`)
    : warning(
        'ffmpeg',
        `${version} (${ffmpeg}) is built without ${missing.join(' and ')}`,
        'Install a full build, such as the package of your distribution, or set media.ffmpeg in infer.yaml to one.',
      )
}
