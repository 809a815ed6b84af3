import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import type { Cpu } from '../../../../core/cpu/cpu.ts'
import { openConversion } from '../../../../core/tasks/speech/conversion.ts'

test('the audio of an engine is closed when its converter has ended', async () => {
  const ffmpeg = { found: async () => ({ missing: 'ffmpeg is not installed.' }) }
  const { convert } = openConversion({ ffmpeg, cpu: {} as Pick<Cpu, 'mp3'> })
  const audio = new PassThrough()
  audio.write('RIFF')
  const wanted = { engineFormat: 'wav', format: 'opus', sampleRate: 24_000 } as const
  await expect(convert({ audio, contentType: 'audio/wav' }, wanted)).rejects.toMatchObject({
    code: 'worker_error',
    message: expect.stringContaining('not installed') as string,
  })
  expect(audio.destroyed).toBe(true)
})
