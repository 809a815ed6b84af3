import { expect, test } from 'vitest'
import { layoutGraph } from '../../../../../../server/console/app/components/graph/layout.ts'
import { edgesOf, graphOfExecution } from '../../../../../../server/console/app/pages/executions/graph-of-execution.ts'

test('edges are those that are written and those that references make, each once', () => {
  const nodes = {
    write: { inputs: { messages: [{ content: '${input.topic}' }] } },
    draw: { inputs: { prompt: 'A ${nodes.write.result.choices[0].message.content} on ${nodes.write.result.model}' } },
    say: { inputs: { input: '$${nodes.draw.result}' } },
    each: { for_each: '${nodes.write.result.parts}', inputs: {} },
    maybe: { when: { value: '${nodes.draw.status}', equals: 'completed' }, inputs: {} },
  }
  expect(edgesOf({ nodes, edges: [{ from: 'draw', to: 'say' }] })).toEqual([
    { from: 'draw', to: 'say' },
    { from: 'write', to: 'draw' },
    { from: 'write', to: 'each' },
    { from: 'draw', to: 'maybe' },
  ])
})

test('nodes that follow each other stand from left to right', () => {
  const dag = { nodes: { b: { inputs: { x: '${nodes.a.result}' } }, a: { inputs: {} } } }
  const { boxes, edges } = graphOfExecution({ dag: dag as never })
  const places = layoutGraph({ boxes, lines: edges })
  expect(places.get('a')!.x).toBeLessThan(places.get('b')!.x)
})

test('an execution without a graph draws nothing', () => {
  expect(graphOfExecution({}).edges).toEqual([])
})
