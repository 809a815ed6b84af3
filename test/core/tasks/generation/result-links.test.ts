import { expect, test } from 'vitest'
import { type GenerationResult, resultWithUrls } from '../../../../core/tasks/generation/result.ts'

const link = ({ id, name }: { id: string; name: string }) => `http://x/files/${id}/${name}`
const facts = { width: 64, height: 32, seed: 7, seed_used: 7, prompt: 'a cat', timings: { inference: 1.5 } }

test('images: every file by its address, and without its id', () => {
  const result: GenerationResult = {
    ...facts,
    images: [
      { file_id: 'file-1', file_name: 'image-1.png', content_type: 'image/png', file_size: 10, width: 64, height: 32 },
      { file_id: 'file-2', file_name: 'image-2.png', content_type: 'image/png', file_size: 20, width: 64, height: 32 },
    ],
  }
  expect(resultWithUrls(result, link)).toEqual({
    ...facts,
    images: [
      {
        url: 'http://x/files/file-1/image-1.png',
        file_name: 'image-1.png',
        content_type: 'image/png',
        file_size: 10,
        width: 64,
        height: 32,
      },
      {
        url: 'http://x/files/file-2/image-2.png',
        file_name: 'image-2.png',
        content_type: 'image/png',
        file_size: 20,
        width: 64,
        height: 32,
      },
    ],
  })
})

test('a video: its address and that of its thumbnail, beside the facts of the result', () => {
  const video = { file_name: 'video.mp4', content_type: 'video/mp4', file_size: 10, fps: 16, duration: 5.06 }
  const shown = resultWithUrls(
    { ...facts, num_frames: 81, fps: 16, video: { ...video, file_id: 'file-1', thumbnail_id: 'file-2' } },
    link,
  )
  const thumbnail = 'http://x/files/file-2/thumbnail.webp'
  expect(shown).toEqual({
    ...facts,
    num_frames: 81,
    fps: 16,
    thumbnail_url: thumbnail,
    video: { ...video, url: 'http://x/files/file-1/video.mp4', thumbnail_url: thumbnail },
  })
  expect(JSON.stringify(shown)).not.toContain('_id')
})
