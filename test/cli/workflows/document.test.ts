import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { dotOf, mermaidOf } from '../../../cli/commands/workflow/export.ts'
import { readParameters, readWorkflowFile } from '../../../cli/workflows/document.ts'
import { svgOf } from '../../../cli/workflows/svg.ts'
import { Dag } from '../../../core/dag/definition.ts'
import { temporaryFolder } from '../_infer.ts'

function written(name: string, text: string): string {
  const path = join(temporaryFolder(), name)
  writeFileSync(path, text)
  return path
}
const node = { task: 'std/completion', inputs: {} }

test('a whole workflow is read, and a graph alone is named after its file', () => {
  const { document: whole } = readWorkflowFile(
    written('a.json', JSON.stringify({ name: 'Story', timeout: 5, dag: { nodes: { a: node } } })),
  )
  expect([whole.name, whole.timeout, whole.dag.edges]).toEqual(['Story', 5, []])
  const { document: alone } = readWorkflowFile(
    written('my flow.yaml', 'nodes: { a: { task: std/completion, inputs: {} } }'),
  )
  expect([alone.name, Object.keys(alone.dag.nodes)]).toEqual(['my flow', ['a']])
})

test.each<[name: string, text: string, message: RegExp, exitCode: number]>([
  ['a.json', '{', /a\.json is not JSON: /, 65],
  ['a.yaml', 'a: [', /a\.yaml:1:5: .*not valid YAML/, 65],
  ['a.yaml', 'hello', /a\.yaml is not a workflow\. Write an object with the graph as 'dag'/, 65],
  ['a.yaml', '', /a\.yaml is not a workflow\. Write an object/, 65],
  ['a.json', '{"name": "x"}', /a\.json is not a workflow\. Write an object/, 65],
  ['a.yaml', 'dag: { nodes: { a: { inputs: {} } } }', /a\.yaml:1:17: .*dag\.nodes\.a\.task/, 65],
  ['a.yaml', 'dag: { nodes: { a: { task: x, inputs: {} } }, edges: [a] }', /dag\.edges\[0\]/, 65],
  ['a.yaml', 'dag: { nodes: {} }\nnmae: x', /a\.yaml:2:1: Unknown parameter: 'nmae'\. Did you mean 'name'\?/, 65],
  ['a.yaml', 'nodes: {}\nname: a\nparamters: {}', /a\.yaml:3:1: .*'paramters'\. Did you mean 'parameters'\?/, 65],
  ['a.json', '{"dag": {"nodes": {},\n "edge": []}}', /a\.json:2:2: .*'dag\.edge'\. Did you mean 'edges'\?/, 65],
])('%s with %j is refused', (name, text, message, exitCode) => {
  const path = written(name, text)
  expect(() => readWorkflowFile(path)).toThrow(
    expect.objectContaining({ message: expect.stringMatching(message), exitCode }),
  )
})

test('a missing file and invalid parameters are refused', () => {
  expect(() => readWorkflowFile('/nonexistent/a.yaml')).toThrow(expect.objectContaining({ exitCode: 74 }))
  const long = written('long.json', '')
  truncateSync(long, 1 << 30)
  expect(() => readWorkflowFile(long)).toThrow(/long\.json cannot be read: it is longer than 16 MiB\.$/)
  expect(() => readParameters(written('p.yaml', '- a'))).toThrow(/contains no parameters/)
  expect(readParameters(written('p.yaml', 'topic: cats\nn: 3'))).toEqual({ topic: 'cats', n: 3 })
})

test('names from users are escaped in every image, whatever they contain', () => {
  const { nodes } = Dag.parse({ nodes: { plain: node, 'end #1;': node } })
  // Ids that the API accepts contain no quotes.
  const dag = { nodes: { '<script>&"]': nodes.plain!, ...nodes }, edges: [] }
  const svg = svgOf('</title><script>', dag)
  expect(svg).not.toContain('<script')
  expect(svg).toContain('&#60;script&#62;&#38;&#34;]')
  expect(mermaidOf(dag)).toContain('["#60;script#62;#38;#quot;]<br/>std/completion"]')
  expect(mermaidOf(dag)).toContain('["end #35;1;<br/>')
  expect(dotOf('a "b"', dag)).toContain('digraph "a \\"b\\"" {')
  expect(dotOf('x', dag)).toContain('"<script>&\\"]" [label="<script>&\\"]\\nstd/completion"];')
})
