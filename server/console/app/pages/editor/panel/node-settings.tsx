import { useState } from 'react'
import { Button } from '../../../components/button.tsx'
import { SelectField } from '../../../components/fields.tsx'
import { editorText } from '../../../text/editor.ts'
import { nodePath, setValue } from '../document/edits.ts'
import type { WorkflowNode } from '../document/workflow-document.ts'
import { useEditor } from '../editor-context.ts'
import { DraftArea, DraftField, numberIn } from './properties.tsx'

/** How a node is run: kept outputs, retries, time limit, failure, cache. */
export function NodeSettings({ node }: { node: WorkflowNode }) {
  const { apply, readOnly } = useEditor()
  const [open, setOpen] = useState(false)
  const { id } = node
  const set = (field: (string | number)[], value: unknown) =>
    apply(setValue([...nodePath(id), ...field], value), `${id} ${field.join('.')}`)
  const number = (value: number | string | undefined) => (value === undefined ? '' : String(value))
  const retries = (text: string) => {
    const max = numberIn(text)
    if (max === undefined) set(['retries'], undefined)
    else set(['retries', 'max'], max)
  }
  const disabled = readOnly
  return (
    <section aria-label={editorText.settings} className="space-y-3">
      <Button small aria-expanded={open} onClick={() => setOpen(!open)}>
        {editorText.settings}
      </Button>
      {open && (
        <>
          <DraftArea
            label={editorText.outputs}
            hint={editorText.outputsHint}
            code
            disabled={disabled}
            value={node.outputs.join('\n')}
            commit={text => {
              const paths = text
                .split('\n')
                .map(path => path.trim())
                .filter(Boolean)
              set(['outputs'], paths.length === 0 ? undefined : paths)
            }}
          />
          <DraftField
            label={editorText.retries}
            hint={editorText.retriesHint}
            inputMode="numeric"
            disabled={disabled}
            value={number(node.retries?.max)}
            commit={retries}
          />
          {node.retries && (
            <DraftField
              label={editorText.backoff}
              hint={editorText.backoffHint}
              inputMode="numeric"
              disabled={disabled}
              value={number(node.retries.backoff_ms)}
              commit={text => set(['retries', 'backoff_ms'], numberIn(text))}
            />
          )}
          <DraftField
            label={editorText.nodeTimeout}
            hint={editorText.nodeTimeoutHint}
            inputMode="decimal"
            disabled={disabled}
            value={number(node.timeout)}
            commit={text => set(['timeout'], numberIn(text))}
          />
          <SelectField
            label={editorText.onError}
            disabled={disabled}
            value={node.on_error}
            options={optionsOf(editorText.onErrorChoices)}
            onChange={event => set(['on_error'], event.target.value === 'fail' ? undefined : event.target.value)}
          />
          <SelectField
            label={editorText.cache}
            disabled={disabled}
            value={node.cache ?? ''}
            options={optionsOf(editorText.cacheChoices)}
            onChange={event => set(['cache'], event.target.value || undefined)}
          />
        </>
      )}
    </section>
  )
}

export const optionsOf = (names: Readonly<Record<string, string>>) =>
  Object.entries(names).map(([value, name]) => ({ value, name }))
