import type { ReferenceStep } from '../../../core/workflows/references.ts'

/** One text and its references, each as root and path; `code` is that of its first fault, with which a workflow fails. */
export interface ReferenceCase {
  text: string
  references: ReferenceStep[][]
  code?: 'unknown_reference' | 'invalid_reference_syntax'
}

const reads = (text: string, ...references: ReferenceStep[][]): ReferenceCase => ({ text, references })
const unknownRoot = (text: string, ...references: ReferenceStep[][]): ReferenceCase => ({
  text,
  references,
  code: 'unknown_reference',
})
const wrongSyntax = (text: string, ...references: ReferenceStep[][]): ReferenceCase => ({
  text,
  references,
  code: 'invalid_reference_syntax',
})

/** The grammar of references, for the server and the console. */
export const referenceCases: readonly ReferenceCase[] = [
  reads(''),
  reads('cost: $5 {ok} $'),
  reads('${input.topic}', ['input', 'topic']),
  reads('${execution.id}', ['execution', 'id']),
  reads(' ${input.a}', ['input', 'a']),
  reads('${ input.a }', ['input', 'a']),
  reads('${input.a}${input.b}', ['input', 'a'], ['input', 'b']),
  reads('a ${ input.a } b ${nodes["x }"].result.y[0]}', ['input', 'a'], ['nodes', 'x }', 'result', 'y', 0]),
  reads('${nodes.a.result.images[0].url}', ['nodes', 'a', 'result', 'images', 0, 'url']),
  reads('${nodes.a.result.images.0.url}', ['nodes', 'a', 'result', 'images', 0, 'url']),
  reads('${nodes.a.result.images[01].url}', ['nodes', 'a', 'result', 'images', 1, 'url']),
  reads('${nodes.img-1.result.text}', ['nodes', 'img-1', 'result', 'text']),
  reads("${nodes['it'].result}", ['nodes', 'it', 'result']),
  reads('${input["a\\"b"]}', ['input', 'a"b']),
  reads('${input["0"]}', ['input', '0']),
  reads('${input.$a_1}', ['input', '$a_1']),
  reads('${nodes.x.result[*].text}', ['nodes', 'x', 'result', -1, 'text']),
  reads('${input.rows[*][*]}', ['input', 'rows', -1, -1]),
  reads('${input["*"]}', ['input', '*']),
  reads('${item}', ['item']),
  reads('${item.name} of ${item[0]["a b"]} at ${index}', ['item', 'name'], ['item', 0, 'a b'], ['index']),
  reads('$${input.a}'),
  reads('$${input.a} ${input.b}', ['input', 'b']),
  reads('$${${input.b}', ['input', 'b']),
  unknownRoot('${foo.bar}'),
  unknownRoot('${foo}'),
  unknownRoot('${items}'),
  unknownRoot('${env.HOME} ${input.a}', ['input', 'a']),
  unknownRoot('${Input.a}'),
  wrongSyntax('${}'),
  wrongSyntax('${input}'),
  wrongSyntax('${index.a}'),
  wrongSyntax('${item.}'),
  wrongSyntax('${item.*}'),
  wrongSyntax('${input.a[ * ]}'),
  wrongSyntax('${input.a[**]}'),
  wrongSyntax('${.input.a}'),
  wrongSyntax('${input.}'),
  wrongSyntax('${input..a}'),
  wrongSyntax('${["input"].a}'),
  wrongSyntax('${[0].a}'),
  wrongSyntax('${input.["a"]}'),
  wrongSyntax('${input.[0]}'),
  wrongSyntax('${inputs.a b}'),
  wrongSyntax('${input.a + 1}'),
  wrongSyntax('${input.a | upper} ${input.b}', ['input', 'b']),
  wrongSyntax('${input.tags[-1]}'),
  wrongSyntax('${input.tags[1234567890]}'),
  wrongSyntax('${nodes.a'),
  wrongSyntax('${nodes.a ${input.b}'),
  wrongSyntax('${input["a}'),
  wrongSyntax('${input["a} ${input.b}', ['input', 'b']),
  wrongSyntax(`\${input.${'a'.repeat(600)}}`),
  wrongSyntax(`\${input${'.a'.repeat(40)}}`),
]
