import { expect, test } from 'vitest'
import { checkFfmpegFound, checkImageSupport } from '../../../cli/doctor/machine.ts'
import { openFfmpeg } from '../../../core/media/ffmpeg.ts'

const found = {
  ffmpeg: '/usr/bin/ffmpeg',
  ffprobe: '/usr/bin/ffprobe',
  version: '7.1',
  libx264: true,
  minterpolate: true,
}

test('ffmpeg is complete, incomplete, or missing', async () => {
  expect(checkFfmpegFound(found)).toMatchObject({ state: 'fine', detail: '7.1 (/usr/bin/ffmpeg)', advice: null })
  expect(checkFfmpegFound({ ...found, libx264: false, minterpolate: false })).toMatchObject({
    state: 'warning',
    detail: '7.1 (/usr/bin/ffmpeg) is built without libx264 (H.264) and minterpolate (frame interpolation)',
  })
  expect(checkFfmpegFound(await openFfmpeg({ environment: { PATH: '' } }).found())).toEqual({
    name: 'ffmpeg',
    state: 'warning',
    detail:
      'ffmpeg and ffprobe are not installed: requests cannot contain video or audio, and videos have no thumbnails',
    advice: 'Install it (Debian, Ubuntu: sudo apt install ffmpeg), or name it in infer.yaml under media.ffmpeg.',
  })
})

test('unreadable images are an error with advice', () => {
  expect(checkImageSupport(undefined).state).toBe('fine')
  expect(checkImageSupport('Native code could not be loaded.')).toMatchObject({
    state: 'broken',
    detail: 'Native code could not be loaded.',
  })
})
