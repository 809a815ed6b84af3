import { type DragEvent, useState } from 'react'

const type = 'application/x-infer-conversation'

/** For what a person drags to move a conversation. */
export const dragProps = (id: string) => ({
  draggable: true,
  onDragStart: ({ dataTransfer }: DragEvent) => {
    dataTransfer.setData(type, id)
    dataTransfer.effectAllowed = 'move'
  },
})

/** For an element on which conversations are dropped; `take` gets the id of one. */
export function useDrop(take: (id: string) => void) {
  const [isOver, setOver] = useState(false)
  return {
    /** Whether a person drags one over it. */
    isOver,
    dropProps: {
      onDragOver: (event: DragEvent) => {
        if (!event.dataTransfer.types.includes(type)) return
        event.preventDefault()
        setOver(true)
      },
      onDragLeave: ({ currentTarget, relatedTarget }: DragEvent) => {
        if (!currentTarget.contains(relatedTarget as Node | null)) setOver(false)
      },
      onDrop: (event: DragEvent) => {
        setOver(false)
        const id = event.dataTransfer.getData(type)
        if (id === '') return
        event.preventDefault()
        take(id)
      },
    },
  }
}
