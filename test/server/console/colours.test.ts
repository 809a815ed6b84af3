import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { defaultModels } from '../../../core/models/defaults.ts'
import { kindColours, kindOfTask, modelColour, modelColours } from '../../../server/console/app/components/colours.ts'

const styles = readFileSync(join(import.meta.dirname, '../../../server/console/app/styles.css'), 'utf8')
const themes = ['light', 'dark'] as const
const colours = new Map(
  [...styles.matchAll(/--color-([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(([, name, light, dark]) => [
    name!,
    { light: light!, dark: dark! },
  ]),
)

/** The relative luminance of WCAG 2.2, from 0 to 1. */
function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map(at => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!
}

function contrast(one: string, other: string, theme: (typeof themes)[number]): number {
  const [high, low] = [one, other].map(name => luminance(colours.get(name)![theme])).sort((a, b) => b - a)
  return (high! + 0.05) / (low! + 0.05)
}

const grounds = ['page', 'surface', 'raised']
const texts = [
  'text',
  'muted',
  'accent',
  'good',
  'warning',
  'bad',
  ...Object.keys(kindColours).map(kind => `kind-${kind}`),
]
const marks = ['control', ...modelColours.map(name => name.replace('bg-', ''))]

describe.each(themes)('colours of the %s theme', theme => {
  test.each([
    ...texts.flatMap(text => grounds.map(ground => [text, ground, 4.5] as const)),
    ...['accent', 'good', 'warning', 'bad'].map(text => [text, `${text}-soft`, 4.5] as const),
    ['accent-text', 'accent', 4.5] as const,
    ...marks.flatMap(mark => grounds.map(ground => [mark, ground, 3] as const)),
  ])('%s on %s has a contrast of at least %f', (colour, ground, least) => {
    expect(contrast(colour, ground, theme)).toBeGreaterThanOrEqual(least)
  })
})

test('each of the included models has a colour of its own', () => {
  const ids = defaultModels().map(({ id }) => id)
  expect(ids.length).toBeGreaterThan(4)
  expect(new Set(ids.map(modelColour)).size).toBe(ids.length)
})

test.each([
  ['std/chat-completion', 'text'],
  ['std/audio-transcription', 'text'],
  ['std/audio-speech', 'audio'],
  ['std/image-edit', 'image'],
  ['slug/inpainting', 'image'],
  ['slug/video-interpolation', 'video'],
  ['json/select', undefined],
  ['wait/approval', undefined],
] as const)('what %s makes has the colour of %s', (task, kind) => {
  expect(kindOfTask(task)).toBe(kind)
})

test('texts have five sizes', () => {
  const sizes = [...styles.matchAll(/--text-\w+: ([\d.]+)rem/g)].map(([, rem]) => Number(rem) * 16)
  expect(sizes).toEqual([13, 14, 16, 20, 28])
})
