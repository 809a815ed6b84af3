/** Request fields for images and videos that OpenAI does not have. */
export type EngineField =
  | 'response_format'
  | 'output_format'
  | 'seed'
  | 'negative_prompt'
  | 'num_inference_steps'
  | 'guidance_scale'
  | 'num_frames'
  | 'fps'
  | 'strength'
  | 'output_path'
