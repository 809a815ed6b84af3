import type { DragEvent } from 'react'
import { announce } from '../../components/announcements.tsx'
import { editorText } from '../../text/editor.ts'

/** Bytes. A workflow is far smaller; another file was meant. */
const maxSize = 1 << 20

/** Handlers that take a dropped file of YAML or JSON as the text of the workflow, which can be undone. */
export const useImport = (setText: (text: string) => void) => ({
  onDragOver(event: DragEvent) {
    if (event.dataTransfer.types.includes('Files')) event.preventDefault()
  },
  onDrop(event: DragEvent) {
    const [file] = event.dataTransfer.files
    if (!file) return
    event.preventDefault()
    if (file.size > maxSize) return announce('bad', editorText.importTooLarge(file.name))
    file.text().then(
      text => {
        setText(text)
        announce('good', editorText.imported(file.name))
      },
      () => announce('bad', editorText.importFailed(file.name)),
    )
  },
})
