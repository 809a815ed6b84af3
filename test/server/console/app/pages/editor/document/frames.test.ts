import { expect, test } from 'vitest'
import type { Edit } from '../../../../../../../server/console/app/pages/editor/document/edits.ts'
import {
  addFrame,
  isWithin,
  placeAround,
  placeFrame,
  placeOfFrame,
  removeFrames,
  setFrameText,
} from '../../../../../../../server/console/app/pages/editor/document/frames.ts'
import { sourceOf } from '../../../../../../../server/console/app/pages/editor/document/source.ts'
import {
  documentText,
  parseWorkflow,
} from '../../../../../../../server/console/app/pages/editor/document/workflow-document.ts'

const source = 'name: Story # mine\ndag:\n  nodes:\n    write: { task: std/chat-completion }\n'

function edited(text: string, edit: Edit): string {
  const { document } = parseWorkflow(text)
  edit(document)
  return documentText(document, text)
}

test('frames are added, moved, written in and removed; the rest of the text stays', () => {
  const first = edited(source, addFrame('Draft', { x: 10.4, y: -20, width: 300, height: 200.6 }))
  expect(first).toBe(
    `${source}  frames:\n    - text: Draft\n      position: { x: 10, y: -20 }\n      size: { width: 300, height: 201 }\n`,
  )
  const second = edited(first, addFrame('', { x: 0, y: 0, width: 1, height: 1 }))
  const moved = edited(second, placeFrame(1, { x: 5, y: 6, width: 70, height: 80 }))
  const written = edited(moved, setFrameText(1, 'Line\nand line'))
  expect(parseWorkflow(written).workflow.frames).toEqual([
    { index: 0, text: 'Draft', position: { x: 10, y: -20 }, size: { width: 300, height: 201 } },
    { index: 1, text: 'Line\nand line', position: { x: 5, y: 6 }, size: { width: 70, height: 80 } },
  ])
  expect(edited(edited(second, removeFrames([1])), removeFrames([0]))).toBe(source)
})

test('a frame without a place is not shown, and keeps its number', () => {
  const text = `${source}  frames: [{ text: lost }, { position: { x: 1, y: 2 }, size: { width: 3, height: 4 } }, 7]\n`
  expect(parseWorkflow(text).workflow.frames).toEqual([
    { index: 1, text: '', position: { x: 1, y: 2 }, size: { width: 3, height: 4 } },
  ])
})

test('the YAML of a stored workflow has its frames', () => {
  const frames = [{ text: 'Draft', position: { x: 1, y: 2 }, size: { width: 3, height: 4 } }]
  const text = sourceOf({
    name: 'Story',
    region: 'Global',
    on_failure: 'fail_fast',
    description: null,
    timeout: 3_600,
    parameters: null,
    dag: { nodes: {}, frames },
  })
  expect(parseWorkflow(text).workflow.frames).toMatchObject(frames)
})

test('a new frame stands around the boxes, else with its middle at the point', () => {
  const boxes = [
    { x: 100, y: 100, width: 200, height: 50 },
    { x: 400, y: 20, width: 200, height: 300 },
  ]
  const around = placeOfFrame(boxes, { x: 0, y: 0 })
  for (const box of boxes) expect(isWithin(box, around)).toBe(true)
  // Each line of its text needs space above them.
  expect(placeAround(boxes, 'two\nlines').height).toBeGreaterThan(placeAround(boxes, 'one').height)
  expect(isWithin({ ...around, x: around.x - 1 }, around)).toBe(false)
  const { x, y, width, height } = placeOfFrame([], { x: 50, y: 60 })
  expect([x + width / 2, y + height / 2]).toEqual([50, 60])
})
