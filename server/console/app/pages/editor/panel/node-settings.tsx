import { useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { optionsOf } from '../../../components/fields.tsx'
import { editorText } from '../../../text/editor.ts'
import { nodePath, setValue } from '../document/edits.ts'
import type { WorkflowNode } from '../document/workflow-document.ts'
import { useEditor } from '../editor-context.ts'
import { ChoiceField, DraftArea, DraftField, linesOf, numberIn } from './properties.tsx'

/** How a node is run: kept outputs, retries, time limit, failure, cache. */
export function NodeSettings({ node }: { node: WorkflowNode }) {
  const { apply } = useEditor()
  const [open, setOpen] = useState(false)
  const { id } = node
  const set = (field: (string | number)[], value: unknown) =>
    apply(setValue([...nodePath(id), ...field], value), `${id} ${field.join('.')}`)
  const number = (
    name: 'retries' | 'backoff' | 'nodeTimeout',
    value: number | string | undefined,
    commit: (text: string) => void,
    inputMode: 'numeric' | 'decimal' = 'numeric',
  ) => (
    <DraftField
      label={editorText[name]}
      hint={editorText[`${name}Hint`]}
      inputMode={inputMode}
      value={String(value ?? '')}
      commit={commit}
    />
  )
  const retries = (text: string) => {
    const max = numberIn(text)
    set(max === undefined ? ['retries'] : ['retries', 'max'], max)
  }
  return (
    <section aria-label={editorText.settings} className="space-y-3">
      <Button small aria-expanded={open} onClick={() => setOpen(!open)} label={editorText.settings} />
      {open && (
        <>
          <DraftArea
            label={editorText.outputs}
            hint={editorText.outputsHint}
            code
            value={node.outputs.join('\n')}
            commit={text => {
              const paths = linesOf(text)
              set(['outputs'], paths.length === 0 ? undefined : paths)
            }}
          />
          {number('retries', node.retries?.max, retries)}
          {node.retries &&
            number('backoff', node.retries.backoff_ms, text => set(['retries', 'backoff_ms'], numberIn(text)))}
          {number('nodeTimeout', node.timeout, text => set(['timeout'], numberIn(text)), 'decimal')}
          <ChoiceField
            label={editorText.onError}
            value={node.on_error}
            options={optionsOf(editorText.onErrorChoices)}
            change={value => set(['on_error'], value === 'fail' ? undefined : value)}
          />
          <ChoiceField
            label={editorText.cache}
            value={node.cache ?? ''}
            options={optionsOf(editorText.cacheChoices)}
            change={value => set(['cache'], value || undefined)}
          />
        </>
      )}
    </section>
  )
}
