/** Texts of the first steps. */
export const firstStepsText = {
  title: 'First steps',
  starter: {
    name: 'Add a real model',
    about: 'Downloads the starter model, a chat model that fits this machine, and adds it to infer.yaml.',
  },
  image: { name: 'Make an image', about: 'Sends a job to the included test model infer/demo and shows it at work.' },
  workflow: {
    name: 'Run a workflow',
    about: 'Writes a story, makes an image of it and speaks it with the included test models, and shows each step.',
  },
} as const
