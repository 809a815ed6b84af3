import { ClipboardList, Download, History, LayoutGrid, Play, Plus, Redo2, Save, Undo2 } from 'lucide-react'
import { useLocation } from 'wouter'
import { Badge } from '../../components/badge.tsx'
import { Button, IconButton, TextLink } from '../../components/button.tsx'
import { downloadWorkflow } from '../../components/download.ts'
import { useShownName } from '../../components/page-title.ts'
import { asLeft } from '../../components/way-back.ts'
import { editorText } from '../../text/editor.ts'
import { shellText } from '../../text/shell.ts'
import { newWorkflow } from './drafts.ts'
import { useEditor } from './editor-context.ts'
import type { useDocument } from './use-document.ts'
import type { useStorage } from './use-storage.ts'

/** The name of the workflow, whether it is saved, and what can be done with it. */
export function Toolbar({
  id,
  text,
  document: { undo, redo, canUndo, canRedo },
  storage: { version, unsaved, save, saving },
  run,
  canSave,
  canRun,
}: {
  id: string
  text: string
  document: Pick<ReturnType<typeof useDocument>, 'undo' | 'redo' | 'canUndo' | 'canRedo'>
  storage: ReturnType<typeof useStorage>
  run: () => void
  canSave: boolean
  canRun: boolean
}) {
  const { workflow, readOnly, addNode, arrange } = useEditor()
  const [, go] = useLocation()
  const stored = id !== newWorkflow
  const name = workflow.name || editorText.newName
  useShownName(name)
  return (
    <header className="bg-surface border-line flex flex-wrap items-center gap-x-3 gap-y-2 border-b px-4 py-2">
      <TextLink
        href={asLeft('/workflows')}
        className="text-xs underline"
        label={shellText.backTo(shellText.pages.workflows)}
      />
      <h1 className="flex min-w-0 flex-wrap items-center gap-2 text-base font-semibold tracking-tight">
        <span className="min-w-0 break-words">{name}</span>
        {unsaved || !stored ? (
          <Badge kind="warning">{editorText.unsaved}</Badge>
        ) : (
          <Badge kind="plain">{editorText.version(version)}</Badge>
        )}
      </h1>
      <div className="ml-auto flex flex-wrap gap-2">
        <IconButton icon={Download} label={editorText.export} onClick={() => downloadWorkflow(workflow.name, text)} />
        {stored && (
          <IconButton icon={ClipboardList} label={editorText.form} onClick={() => go(`/workflows/${id}/form`)} />
        )}
        {stored && (
          <IconButton icon={History} label={editorText.versions} onClick={() => go(`/workflows/${id}/versions`)} />
        )}
        {!readOnly && (
          <>
            <IconButton icon={Undo2} label={editorText.undo} disabled={!canUndo} onClick={undo} />
            <IconButton icon={Redo2} label={editorText.redo} disabled={!canRedo} onClick={redo} />
            <IconButton icon={LayoutGrid} label={editorText.arrange} onClick={() => void arrange()} />
            <Button icon={Plus} onClick={() => addNode()} label={editorText.addNode} />
            <Button
              icon={Save}
              busy={saving}
              disabled={!canSave || (!unsaved && stored)}
              onClick={save}
              label={editorText.save}
            />
            <Button primary icon={Play} disabled={!canRun} onClick={run} label={editorText.run} />
          </>
        )}
      </div>
    </header>
  )
}
