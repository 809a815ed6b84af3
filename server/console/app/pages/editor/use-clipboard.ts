import { useEffect, useEffectEvent } from 'react'
import { announce } from '../../components/announcements.tsx'
import { editorText } from '../../text/editor.ts'
import { copiedText, pasteOf } from './document/clipboard.ts'
import { useEditor } from './editor-context.ts'

/** Whether keys are meant for the graph: the focus is in it, or nowhere. */
export function isGraphFocused(): boolean {
  const focused = document.activeElement ?? document.body
  return focused === document.body || (focused.closest('.react-flow') !== null && !focused.matches('textarea'))
}

/**
 * Copies the selected nodes and pastes nodes with the keys of the system, also from another workflow or tab; Ctrl and D
 * duplicates them. The text is YAML.
 */
export function useClipboard(selected: ReadonlySet<string>): void {
  const { workflow, value, apply, readOnly } = useEditor()
  const text = () => copiedText(value, selected)
  const insert = (copied: string): boolean => {
    const edit = readOnly ? undefined : pasteOf(copied, workflow)
    if (!edit || !apply(edit)) return false
    announce('good', editorText.pasted)
    return true
  }
  const copy = useEffectEvent((event: ClipboardEvent) => {
    // Text that a person has marked is copied as such.
    const copied = isGraphFocused() && getSelection()?.isCollapsed !== false ? text() : undefined
    if (copied === undefined) return
    event.clipboardData?.setData('text/plain', copied)
    event.preventDefault()
  })
  const paste = useEffectEvent((event: ClipboardEvent) => {
    if (isGraphFocused() && insert(event.clipboardData?.getData('text/plain') ?? '')) event.preventDefault()
  })
  const press = useEffectEvent((event: KeyboardEvent) => {
    if (event.key.toLowerCase() !== 'd' || !(event.ctrlKey || event.metaKey) || !isGraphFocused()) return
    const copied = text()
    if (copied === undefined) return
    event.preventDefault()
    insert(copied)
  })
  useEffect(() => {
    const stop = new AbortController()
    const { signal } = stop
    document.addEventListener('copy', event => copy(event), { signal })
    document.addEventListener('paste', event => paste(event), { signal })
    document.addEventListener('keydown', event => press(event), { signal })
    return () => stop.abort()
  }, [])
}
