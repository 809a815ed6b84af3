import { expect, test } from 'vitest'
import { piperBody, piperVoicesIn } from '../../../../core/tasks/protocols/piper.ts'

test.each([
  [{ input: 'Hi' }, { text: 'Hi' }],
  [
    { model: 'm', response_format: 'wav', input: 'Hi', voice: 'amy', speed: 2, noise_scale: 0 },
    { text: 'Hi', voice: 'amy', speaker: 'amy', length_scale: 0.5, noise_scale: 0 },
  ],
  [{ input: 'Hi', voice: { id: 'amy' }, speed: 1 }, { text: 'Hi' }],
])('%o becomes %o', (body, sent) => expect(JSON.parse(piperBody(JSON.stringify(body)))).toEqual(sent))

test('voices are listed with their language, and those with speakers by these', () => {
  const unknown = { gender: null, preview_url: null }
  expect(
    piperVoicesIn(
      JSON.stringify({
        'en_US-joe-medium': { language: { code: 'en_US' }, speaker_id_map: {} },
        'en_US-arctic': { language: { code: 'en_US' }, speaker_id_map: { awb: 0, rms: 1 } },
        odd: { language: 'en', speaker_id_map: 7 },
      }),
    ),
  ).toEqual([
    { id: 'en_US-joe-medium', name: 'en_US-joe-medium', language: 'en_US', ...unknown },
    { id: 'awb', name: 'awb', language: 'en_US', ...unknown },
    { id: 'rms', name: 'rms', language: 'en_US', ...unknown },
    { id: 'odd', name: 'odd', language: null, ...unknown },
  ])
  for (const answer of ['', '[]', '7', '{"a":1}']) expect(piperVoicesIn(answer)).toEqual([])
})
