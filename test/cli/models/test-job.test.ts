import { describe, expect, test } from 'vitest'
import { faultOfResult, testInputs } from '../../../cli/models/test-job.ts'
import { modelTaskRecords, taskNamed } from '../../../core/tasks/registry.ts'

const byJob = modelTaskRecords.filter(record => record.test === undefined)

test('every task has a test request or the inputs of a test job', () => {
  expect(modelTaskRecords).toHaveLength(18)
  for (const record of byJob) {
    const read = record.request.safeParse({ model: 'm', ...testInputs(record) })
    expect(read.error, record.id).toBeUndefined()
  }
})

describe('the check of the result of a test job', () => {
  const png = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
  const wav = (sample: number) => Buffer.concat([Buffer.from('RIFF....WAVE'), Buffer.alloc(32), Buffer.of(sample, 0)])
  const images = { images: [{ url: 'a' }] }
  test.each<[string, string, Record<string, unknown> | null, Buffer, string | null]>([
    ['an image', 'slug/text-to-image', images, png, null],
    ['no file', 'slug/text-to-image', { images: [] }, png, 'no file'],
    ['no result', 'std/image-edit', null, png, 'no file'],
    ['another file', 'std/image-edit', images, Buffer.from('<html>'), 'not an image'],
    ['a video', 'slug/text-to-video', { video: { url: 'a' } }, Buffer.from('\0\0\0 ftypisom', 'latin1'), null],
    ['an image as video', 'slug/text-to-video', { video: { url: 'a' } }, png, 'not a video'],
    ['speech', 'std/audio-speech', { audio_url: 'a' }, wav(1), null],
    ['silence', 'std/audio-speech', { audio_url: 'a' }, wav(0), 'silent'],
    ['no sound', 'std/audio-speech', { audio_url: 'a' }, png, 'not audio'],
    // A tone has no words.
    ['an empty transcript', 'std/audio-transcription', { text: '' }, png, null],
    ['no transcript', 'std/audio-translation', { segments: [] }, png, 'no text'],
  ])('%s', async (_, task, result, bytes, says) => {
    const fault = await faultOfResult(taskNamed(task)!, { result }, () => Promise.resolve(bytes))
    if (says === null) expect(fault).toBeNull()
    else expect(fault).toContain(says)
  })
})
